"""Refused: PyTorch compiles the functions that flex_attention is given, and there is no compiler here."""
raise ImportError("tensorgrad has no flex_attention, whose score functions PyTorch compiles; scaled_dot_product_attention with an attn_mask computes "
                  "the same masks and biases")
