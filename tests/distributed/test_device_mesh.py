"""Meshes of ranks: one rank beside PyTorch, eight as threads."""
import pytest
from ranks import as_threads
from side_by_side import attempt
from support import Programs, cpu_only

import tensorgrad as torch
from tensorgrad import distributed as dist
from tensorgrad.distributed.device_mesh import DeviceMesh, init_device_mesh

pytestmark = cpu_only
program = Programs()


@program
def one_rank(torch):
    import importlib
    d, m = (importlib.import_module(f"{torch.__name__}.distributed{name}") for name in ("", ".device_mesh"))
    d.init_process_group("gloo", rank=0, world_size=1, store=d.HashStore())
    try:
        make = m.init_device_mesh
        one, two, bare = (make("cpu", (1,), mesh_dim_names=("dp",)), make("cpu", (1, 1), mesh_dim_names=("dp", "tp")),
                          make("cpu", (1, 1)))
        facts = [[repr(mesh), mesh.shape, mesh.ndim, mesh.size(), mesh.size(0), mesh.mesh, mesh.mesh_dim_names,
                  mesh.device_type, mesh.get_rank(), mesh.get_coordinate(), mesh.get_local_rank(0),
                  len(mesh.get_all_groups())]
                 for mesh in (one, two, bare, two["tp"], two["tp", "dp"], two._flatten(), two._flatten("all"),
                              m.DeviceMesh("cpu", torch.tensor([[0]])),
                              m.DeviceMesh.from_group(d.group.WORLD, "cpu"))]
        groups = [one.get_group() is d.group.WORLD, two.get_group("tp").size(), one["dp"] is one,
                  two == make("cpu", (1, 1), mesh_dim_names=("dp", "tp")),
                  two == bare, hash(two) == hash(bare)]
        refused = [lambda: two.get_group(), lambda: two.get_local_rank(), lambda: two["x"], lambda: two["tp", "x"],
                   lambda: two.get_group("x"),
                   lambda: bare["dp"], lambda: bare.get_group("dp"), lambda: make("cpu", (2,)),
                   lambda: make("cpu:0", (1,)),
                   lambda: make("cpu", (1, 1), mesh_dim_names=("a", "a")),
                   lambda: make("cpu", (1,), mesh_dim_names=("a", "b")), lambda: m.DeviceMesh("cpu"),
                   lambda: one.get_group(5), lambda: one.size(3), lambda: m.DeviceMesh.from_group([], "cpu"),
                   lambda: bare._flatten(),
                   lambda: m.DeviceMesh.from_group(d.group.WORLD, "cpu", [1]),
                   lambda: m.DeviceMesh.from_group([d.group.WORLD], "cpu"),
                   lambda: m.DeviceMesh.from_group([d.group.WORLD], "cpu", [[0]], mesh_dim_names=("a", "b")),
                   lambda: two._flatten("tp"),
                   lambda: make("cpu", (1,), backend_override={1: "gloo"})]
        return (facts, groups, [attempt(call) for call in refused],
                type(make("cpu", (1,), mesh_dim_names=("a",), backend_override={"a": "gloo"})).__name__)
    finally:
        d.destroy_process_group()


test_programs = program.test()


def total(rank, group):
    """The sum of the ranks of a group, by itself."""
    value = torch.tensor([rank])
    dist.all_reduce(value, group=group)
    return value.item()


def test_rows_columns_and_blocks():
    def program(rank, group):
        mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("pp", "dp", "tp"))
        block, line = mesh["pp", "tp"], mesh["dp"]
        flat = block._flatten()
        assert (mesh.get_coordinate() == (rank // 4, rank // 2 % 2, rank % 2)
                and mesh["pp_tp"] is flat is block._flatten("pp_tp"))
        assert (mesh.get_group("pp_tp") is flat.get_group()
                and mesh.get_group(1) is line.get_group() is mesh.get_group("dp"))
        assert mesh["tp", "pp"].get_local_rank("pp") == rank // 4
        return [total(rank, group) for group in (mesh.get_group("pp"), line.get_group(), block.get_group("tp"),
                                                 flat.get_group())] + [
            block.mesh.tolist(), line.mesh.tolist(), flat.mesh.tolist(), flat.get_local_rank(), repr(block),
            line.get_group().group_desc]
    for rank, found in enumerate(as_threads(8, program)):
        pp, dp, tp = rank // 4, rank // 2 % 2, rank % 2
        block = [[4 * i + 2 * dp + j for j in range(2)] for i in range(2)]
        line = [4 * pp + 2 * i + tp for i in range(2)]
        assert found == [4 + 2 * (2 * dp + tp), sum(line), sum(block[pp]), sum(map(sum, block)), block, line,
                         sum(block, []), 2 * pp + tp,
                         "DeviceMesh((pp=2, tp=2), 'cpu', stride=(4, 1))", "mesh_dp"]


def test_some_of_the_ranks_in_an_order_of_their_own():
    def program(rank, group):
        mesh = DeviceMesh("cpu", torch.tensor([[3, 1]]), mesh_dim_names=("a", "b"))
        again = DeviceMesh.from_group([dist.group.WORLD, dist.group.WORLD], "cpu", [[0, 1], [2, 3]],
                                      mesh_dim_names=("a", "b"))
        with pytest.raises(ValueError, match="the ranks of a mesh must differ"):
            DeviceMesh("cpu", [0, 0])
        return (mesh.get_coordinate(), mesh["b"].mesh.tolist(), again.get_coordinate(),
                total(rank, mesh.get_group("b")) if rank in (1, 3) else None)
    assert as_threads(4, program) == [(None, [3, 1], (0, 0), None), ((0, 1), [3, 1], (0, 1), 4),
                                      (None, [3, 1], (1, 0), None), ((0, 0), [3, 1], (1, 1), 4)]
