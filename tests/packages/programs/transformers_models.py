"""BERT, GPT-2, Llama and T5 with small configurations: logits, a training step, generation, saving and loading."""
import tempfile

import torch
from transformers import (
    AutoModel,
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

torch.manual_seed(0)
small = {"vocab_size": 40, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
ids = torch.randint(3, 40, (2, 7))


def show(name, model, **inputs):
    model.train(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(2):
        out = model(**inputs)
        optimizer.zero_grad()
        out.loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print(name, f"loss {out.loss.item():.4f} gradient {norm.item():.4f} logits {out.logits.abs().mean().item():.4f}")
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        again = type(model).from_pretrained(folder)
        same = [torch.equal(a, b) for a, b in zip(model.state_dict().values(), again.state_dict().values())]
        print(name, "saved and loaded", all(same), len(same), type(AutoModel.from_pretrained(folder)).__name__)


bert = BertForSequenceClassification(BertConfig(
    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, num_labels=3, **small))
show("bert", bert, input_ids=ids, attention_mask=torch.ones_like(ids), labels=torch.tensor([2, 0]))
gpt = GPT2LMHeadModel(GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=32, **small))
show("gpt2", gpt, input_ids=ids, labels=ids)
print("gpt2 continues", gpt.generate(ids, max_new_tokens=6, do_sample=False, attention_mask=torch.ones_like(ids)).tolist())
print("gpt2 beams", gpt.generate(ids, max_new_tokens=5, num_beams=3, attention_mask=torch.ones_like(ids)).tolist())
torch.manual_seed(4)
print("gpt2 samples", gpt.generate(ids, max_new_tokens=6, do_sample=True, top_k=10, temperature=0.7,
                                   attention_mask=torch.ones_like(ids)).tolist())
llama = LlamaForCausalLM(LlamaConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                                     intermediate_size=48, **small))
show("llama", llama, input_ids=ids, labels=ids)
print("llama continues", llama.generate(ids, max_new_tokens=6, do_sample=False, attention_mask=torch.ones_like(ids)).tolist())
t5 = T5ForConditionalGeneration(T5Config(d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, vocab_size=40,
                                         pad_token_id=0, eos_token_id=2, decoder_start_token_id=0))
show("t5", t5, input_ids=ids, labels=ids)
print("t5 answers", t5.generate(ids, max_new_tokens=6, do_sample=False).tolist())
