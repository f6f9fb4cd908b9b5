"""peft: LoRA, IA3 and prefix adapters on a small Llama: training, merging, saving and loading, switching."""
import tempfile

import torch
from peft import (
    IA3Config,
    LoraConfig,
    PeftModel,
    PrefixTuningConfig,
    PromptTuningConfig,
    TaskType,
    get_peft_model,
    get_peft_model_state_dict,
)
from transformers import LlamaConfig, LlamaForCausalLM


def base():
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, vocab_size=40,
                                        num_key_value_heads=2, intermediate_size=48, pad_token_id=0))


ids = torch.randint(3, 40, (2, 7), generator=torch.Generator().manual_seed(1))
configs = {
    "lora": LoraConfig(task_type=TaskType.CAUSAL_LM, r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"]),
    "dora": LoraConfig(task_type=TaskType.CAUSAL_LM, r=2, use_dora=True, target_modules="all-linear"),
    "ia3": IA3Config(task_type=TaskType.CAUSAL_LM, target_modules=["k_proj", "down_proj"], feedforward_modules=["down_proj"]),
    "prompt": PromptTuningConfig(task_type=TaskType.CAUSAL_LM, num_virtual_tokens=3),
    "prefix": PrefixTuningConfig(task_type=TaskType.CAUSAL_LM, num_virtual_tokens=3),
}
for name, config in configs.items():
    model = get_peft_model(base(), config)
    trainable, total = model.get_nb_trainable_parameters()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-2)
    for _ in range(3):
        loss = model(input_ids=ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(name, trainable, total, f"{loss.item():.4f}", sorted(get_peft_model_state_dict(model))[0])
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        again = PeftModel.from_pretrained(base(), folder).eval()
        with torch.no_grad():
            a, b = (m.eval()(input_ids=ids).logits for m in (model, again))
        print(name, "saved and loaded", torch.allclose(a, b, atol=1e-5), f"{a.abs().mean().item():.4f}")
    if name in ("lora", "dora", "ia3"):
        with model.disable_adapter(), torch.no_grad():
            plain = model(input_ids=ids).logits
        merged = model.merge_and_unload()
        print(name, "merged", torch.allclose(merged(input_ids=ids).logits, a, atol=1e-4), f"{plain.std().item():.4f}")
