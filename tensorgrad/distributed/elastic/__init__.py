"""torch.distributed.elastic: how `python -m tensorgrad.distributed.run` starts, watches and restarts the processes of a
job.

https://pytorch.org/docs/stable/distributed.elastic.html
"""
