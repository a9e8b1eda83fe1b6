import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from mlx_worker_wrapper import run

run(__file__)
