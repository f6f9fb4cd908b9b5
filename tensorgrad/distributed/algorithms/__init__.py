"""torch.distributed.algorithms: names that packages import before they ask whether there are other processes."""
