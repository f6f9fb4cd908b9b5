"""How an op is run, recorded and pulled back: the dispatcher, the tape, the engine."""
