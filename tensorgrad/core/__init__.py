"""The core: the dispatcher, which runs and records ops, the tape, and the engine, which pulls gradients back."""
