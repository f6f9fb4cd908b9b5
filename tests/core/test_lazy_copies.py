"""Copies that share memory until one side is written to, beside PyTorch's."""
import gc
import io

import numpy as np
import pytest
from side_by_side import same

import tensorgrad as torch

WRITES = {
    "view": lambda torch, t, c: c.view(2, 3).t()[1].mul_(10),
    "alias": lambda torch, t, c: t.data.sub_(1),
    "out": lambda torch, t, c: torch.add(t, 1, out=c),
    "indices": lambda torch, t, c: c.index_add_(0, torch.tensor([1, 1]), torch.ones(2)).masked_fill_(t > 3, 0),
    "assignment": lambda torch, t, c: c.__setitem__(slice(1, 4), 7.),
    "foreach": lambda torch, t, c: torch._foreach_add_([t, c], 1),
    "numpy": lambda torch, t, c: c.numpy().__setitem__(0, 4),
    "storage": lambda torch, t, c: c.untyped_storage().fill_(0),
    "address": lambda torch, t, c: (c.data_ptr(), None)[1],
}


@pytest.fixture(autouse=True)
def all_objects():
    """Let the collector know all objects: those that it was told to leave out may hold tensors."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_parts_the_sides(write):
    def program(torch):
        torch.manual_seed(0)
        t = torch.arange(6.)
        earlier = t[2:]
        c = t._lazy_clone()
        later, third = c[1::2], torch._lazy_clone(c)
        write(torch, t, c)
        seen = [t, earlier, c, later, third]
        before = [(torch._C._is_cow_tensor(x), x.storage_offset(), x.stride(), x.tolist()) for x in seen]
        third[0] = 9
        (t + third).sum()
        return before, seen, [torch._C._is_cow_tensor(x) for x in seen]
    same(program)


def test_the_last_side_keeps_the_memory():
    t = torch.ones(2, 3, dtype=torch.bfloat16)
    place = torch._C._data_address(t)
    c = t[1:]._lazy_clone()
    assert torch._C._data_address(c) == place + 6 and torch._C._storage_address(c) != torch._C._storage_address(t)
    t += 1
    c *= 3
    assert torch._C._data_address(t) != place and c.data_ptr() == place + 6 and c.tolist() == [[3., 3., 3.]]
    assert t.tolist() == [[2.] * 3] * 2 and c._version == 1 and t._version == 1


def test_gradients_go_through_a_lazy_copy():
    x = torch.tensor([1., 2.], requires_grad=True)
    y = (x * 3)._lazy_clone()
    (y * y).backward(torch.tensor([1., 10.]))
    assert x.grad.tolist() == [18., 360.]
    factor = torch.tensor([4., 5.])
    z = x * factor._lazy_clone()
    factor += 1
    z.backward(torch.tensor([1., 10.]))
    assert x.grad.tolist() == [22., 410.]


def test_memory_that_others_write_to_is_copied():
    array = np.ones(3)
    t = torch.from_numpy(array)
    c = t._lazy_clone()
    array[0] = 5
    assert c.tolist() == [1., 1., 1.] and not torch._C._is_cow_tensor(t)
    lent = torch.ones(3)
    lent.numpy()
    held = torch.ones(3)
    bytes_of = held.untyped_storage()
    assert not any(torch._C._is_cow_tensor(x._lazy_clone()) for x in (lent, held, torch.ones(2, device="meta")))
    bytes_of.fill_(0)


def test_a_lazy_copy_is_saved_and_trained():
    t = torch.ones(3)
    c, file = t._lazy_clone(), io.BytesIO()
    torch.save({"c": c, "t": t}, file)
    file.seek(0)
    assert torch.load(file)["c"].tolist() == [1.] * 3
    p = torch.nn.Parameter(t._lazy_clone())
    p.grad = torch.tensor([1., 2., 3.])
    torch.optim.SGD([p], lr=1.).step()
    assert p.tolist() == [0., -1., -2.] and t.tolist() == [1.] * 3
