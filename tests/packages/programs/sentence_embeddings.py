"""sentence-transformers: a model built from parts, embeddings, a training loss, saving and loading."""
import tempfile
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer, losses, util
from transformers import BertConfig, BertModel, BertTokenizerFast

try:
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer
except ImportError:
    from sentence_transformers.models import Dense, Normalize, Pooling, Transformer

torch.manual_seed(0)
words = "[PAD] [UNK] [CLS] [SEP] [MASK] a cat dog sits runs on the mat grass quickly green".split()
sentences = ["the cat sits on the mat", "a dog runs on the grass", "a cat runs", "the green dog sits"]
with tempfile.TemporaryDirectory() as folder:
    vocabulary = Path(folder) / "vocab.txt"
    vocabulary.write_text("\n".join(words))
    BertTokenizerFast(vocab=str(vocabulary)).save_pretrained(folder)
    BertModel(BertConfig(vocab_size=len(words), hidden_size=24, num_hidden_layers=2, num_attention_heads=4,
                         intermediate_size=32)).save_pretrained(folder)
    transformer = Transformer(folder)
    model = SentenceTransformer(modules=[transformer, Pooling(24, "mean"), Dense(24, 8), Normalize()])
    before = model.encode(sentences, convert_to_tensor=True)
    print("embeddings", before.shape, [round(v, 4) for v in before[0].tolist()])
    print("cosine", [[round(v, 3) for v in row] for row in util.cos_sim(before, before).tolist()])
    loss = losses.CosineSimilarityLoss(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    model.eval()
    for step in range(3):
        features = [model.tokenize(sentences[:2]), model.tokenize(sentences[2:])]
        value = loss(features, torch.tensor([0.9, 0.1]))
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        print("step", step, f"{value.item():.5f}")
    print("search", [[(hit["corpus_id"], round(hit["score"], 3)) for hit in hits] for hits in
                     util.semantic_search(model.encode(sentences[:2], convert_to_tensor=True), before, top_k=2)])
    print("mining", util.paraphrase_mining(model, sentences)[0][1:])
    model.save(folder + "/saved")
    again = SentenceTransformer(folder + "/saved")
    print("saved and loaded", torch.allclose(again.encode(sentences, convert_to_tensor=True),
                                             model.encode(sentences, convert_to_tensor=True), atol=1e-6))
