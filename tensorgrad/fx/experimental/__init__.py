"""torch.fx.experimental: what packages ask while a program may be traced, which it never is."""
