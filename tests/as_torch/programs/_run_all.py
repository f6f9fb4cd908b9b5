"""Run programs with whatever `torch` is here, each in a process of its own, forked once torch is imported: a JSON object of what they print."""
import json
import os
import runpy
import sys
import tempfile

if __name__ == "__main__":
    import torch._dynamo    # noqa: F401  with what optimizers import when they are first made: once for all of them
    printed = {}
    for path in sys.argv[1:]:
        with tempfile.TemporaryFile() as output:
            sys.stdout.flush()
            child = os.fork()
            if child == 0:
                os.dup2(output.fileno(), 1)
                sys.argv = [path]
                try:
                    runpy.run_path(path, run_name="__main__")
                    sys.stdout.flush()
                finally:
                    os._exit(0)
            os.waitpid(child, 0)
            output.seek(0)
            printed[os.path.basename(path)] = output.read().decode()
    print(json.dumps(printed))
