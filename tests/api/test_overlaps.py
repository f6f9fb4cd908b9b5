"""Writes to memory that an operand or another element of the target shares: PyTorch's errors, and what it allows."""
import pytest
from side_by_side import attempt, same

CALLS = """
torch.cat((x[:2], x[2:]), out=x) ; torch.cat((x[1:2], x[2:3]), out=x[:2]) ; torch.cat((a[:2], a[2:3]), out=a[1:4]) ; torch.stack((a[:2], a[2:4]), out=a[:4].view(2, 2))
torch.cat((a.expand(2, 6), a.expand(2, 6)), out=torch.zeros(6).expand(4, 6)) ; torch.gather(g, 0, t([0, 1]), out=g[:2]) ; torch.add(a, a, out=torch.zeros(1).expand(6))
a.expand(3, 6).add_(1) ; a.expand(3, 6).copy_(torch.ones(6)) ; a.expand(3, 6).exp_() ; a.expand(3, 6).scatter_(0, t([[0]]), 1.)
put(a.expand(3, 6), slice(None), 5.) ; put(a.expand(3, 6), (slice(None), 0), 5.) ; put(a.expand(3, 6), (0, 0), 5.) ; put(a.expand(3, 6), Ellipsis, 5.)
put(torch.zeros(1).expand(3), 0, 5.) ; a[1:].add_(a[:-1]) ; a[1:].copy_(a[:-1]) ; a[1:].addcmul_(a[:-1], a[:-1]) ; a[1:].eq_(a[:-1])
torch.add(a[1:], a[:-1], out=a[1:]) ; torch.exp(a[1:], out=a[:-1]) ; torch.exp(a, out=a) ; torch.cumsum(a[1:], 0, out=a[:-1]) ; torch.where(a > 1, a, a, out=a)
torch.where(a[1:] > 1, a[1:], a[1:], out=a[:-1]) ; torch.minimum(a[1:], a[1:], out=a[:-1]) ; torch.min(a[1:], a[1:], out=a[:-1])
torch.max(x, 0, out=(x[0], I)) ; torch.min(x, 0, out=(x[0], I)) ; torch.mode(x, 0, out=(x[0], I)) ; torch.aminmax(x, dim=0, out=(x[0], x[1]))
torch.topk(x, 2, 0, out=(x[:2], torch.empty(2, 6, dtype=torch.int64))) ; torch.kthvalue(a, 2, out=(a[0], torch.empty((), dtype=torch.int64)))
torch.amax(x, 0, out=x[0]) ; torch.logsumexp(x, 0, out=x[0]) ; torch.var(x, 0, out=x[0]) ; torch.norm(x, dim=0, out=x[0])
a.index_put_((t([0, 1]),), a[2:4]) ; a.scatter_(0, t([0, 1]), a[2:4]) ; a.index_add_(0, t([0, 1]), a[:2]) ; a.index_fill_(0, t([0, 1]), a[3]) ; a.masked_fill_(a > 2, a[1])
g.scatter_(0, g, g) ; g.index_fill_(0, g, 1) ; g.index_copy_(0, g, g) ; g.index_add_(0, g, g) ; g.put_(g, g) ; g.index_put_((g,), g) ; g.scatter_(0, g[:2], t([1, 2]))
put(a, g, a[0]) ; put(a, g, a[3:]) ; put(a, g, a[:3]) ; put(g, g, 0) ; put(g, g > 0, g[1]) ; put(g, g > 1, g[:1]) ; put(a[:3], g > 0, a[1:3])
a.index_put_((g,), a[0], accumulate=True) ; put(a, [0, 1], a[:2]) ; put(x, (g, g), x[0, 3:]) ; put(x.t(), g, x.t()[3:]) ; put(x, g[0], x[0])
torch.add(x.t(), 1, out=torch.empty(0)).stride() ; torch.sum(x.view(2, 2, 6).mT, 0, out=torch.empty(0)).stride() ; torch.addmm(x[:, :4], x[:, :4], x.view(6, 4)[:4].t(), out=torch.empty(0)).stride()
torch.add(True, True) ; torch.add(2, 3) ; torch.mul(2, 3) ; torch.sub(5, 3) ; torch.div(5, 3) ; torch.add(1, 1.5) ; torch.add(1, 1, alpha=2) ; torch.exp(1)
"""  # noqa: E501


@pytest.mark.parametrize("line", CALLS.strip().splitlines())
def test_calls(line):
    def program(torch):
        def put(target, index, value):
            target[index] = value
            return target

        def call(text):
            names = {"torch": torch, "t": torch.tensor, "put": put, "a": torch.arange(6.),
                     "x": torch.arange(24.).view(4, 6), "g": torch.tensor([2, 1, 0]),
                     "I": torch.empty(6, dtype=torch.int64)}
            return attempt(lambda: eval(text, names)), names["a"]
        return [call(text.strip()) for text in line.split(" ; ")]
    same(program, atol=1e-5)
