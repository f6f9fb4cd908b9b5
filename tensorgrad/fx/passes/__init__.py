"""torch.fx.passes: analyses and changes of graphs. https://pytorch.org/docs/stable/fx.html"""
