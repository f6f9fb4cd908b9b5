"""torch.distributed.constants: time limits where a program names none."""
from __future__ import annotations

from datetime import timedelta

from .group import TIMEOUT as default_pg_timeout

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]

default_pg_nccl_timeout: timedelta | None = default_pg_timeout
