"""Ways to move arrays between ranks: shared memory of one machine, MPI, NCCL. `base.py` says what each of them does."""
