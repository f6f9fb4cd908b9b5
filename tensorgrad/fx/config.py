"""Settings of torch.fx: none of them has an effect but those that `Interpreter` reads."""
disable_progress = True
verbose_progress = False
do_not_emit_stack_traces = False
