"""How long messages take: a latency for each, and bytes over a bandwidth.

R. W. Hockney, The communication challenge for MPP (1994): a message of b bytes takes α + b / β.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from .schedules import Algorithm


class Network(NamedTuple):
    """A `latency` in seconds, and a `bandwidth` in bytes a second, in each direction of each rank at once."""

    latency: float
    bandwidth: float
    name: str = ""

    def takes(self, rounds: float, nbytes: float) -> float:
        """The seconds that messages one after the other take, all together of so many bytes.

        >>> Network(1e-6, 1e9).takes(2, 1000)
        3e-06
        """
        return rounds * self.latency + nbytes / self.bandwidth

    def __str__(self) -> str:
        return f"{self.name and f'{self.name}: '}{seconds(self.latency)} a message, {amount(self.bandwidth)}/s"


NETWORKS = {"memory": Network(2e-6, 8e9, "memory of one machine"),
            "ethernet": Network(25e-6, 1.25e9, "10 Gb/s Ethernet"),
            "infiniband": Network(2e-6, 12.5e9, "100 Gb/s InfiniBand")}


def network_of(given: Any) -> Network:
    """A Network of a name, or of a latency and a bandwidth."""
    if isinstance(given, str):
        if given not in NETWORKS:
            raise ValueError(f"network must be one of {', '.join(map(repr, NETWORKS))}, or a pair (seconds, bytes a "
                             f"second), not {given!r}")
        return NETWORKS[given]
    latency, bandwidth = given[:2]
    if not (0 <= latency < float("inf") and bandwidth > 0):
        raise ValueError(f"a latency is not negative and a bandwidth is positive, not {latency!r} and {bandwidth!r}")
    return given if isinstance(given, Network) else Network(float(latency), float(bandwidth))


def predicted(algorithm: Algorithm, n: int, nbytes: float, network: Network) -> float:
    """The seconds of a collective by the formulas of its algorithm."""
    return network.takes(algorithm.rounds.of(n), algorithm.volume.of(n) * nbytes)


def seconds(value: float) -> str:
    """A time with three digits.

    >>> seconds(2e-6), seconds(0.01234), seconds(0), seconds(72.4)
    ('2 µs', '12.3 ms', '0 s', '72.4 s')
    """
    scale, unit = (next(((s, u) for s, u in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")) if value >= s), (1e-9, "ns"))
                   if value > 0 else (1, "s"))
    return f"{value / scale:.3g} {unit}" if value / scale < 1000 else f"{value / scale:,.0f} {unit}"


def amount(nbytes: float) -> str:
    """An amount of bytes with three digits.

    >>> amount(24), amount(4096), amount(1.25e9), amount(10.5)
    ('24 B', '4.1 kB', '1.25 GB', '10.5 B')
    """
    scale, unit = next(((s, u) for s, u in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if nbytes >= s), (1, "B"))
    return f"{nbytes / scale:.3g} {unit}"


__all__ = ["NETWORKS", "Network", "amount", "network_of", "predicted", "seconds"]
