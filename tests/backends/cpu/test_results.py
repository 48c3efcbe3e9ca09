"""Small results lie where they lay before, but never where somebody still looks."""

import threading

import monograph as mg
from monograph.backends.cpu.program import arena, pool
from monograph.runtime.executor import EXECUTOR


def computed(x, n):
    """A small result of a program that is the same for every n."""
    made = x * float(n)
    mg.synchronize()
    return made


def test_memory_that_nobody_holds_serves_again(monkeypatch):
    x = mg.ones(24)
    for n in range(3):
        computed(x, n)
    asked = []
    allocate = pool.allocate
    monkeypatch.setattr(pool, "allocate", lambda nbytes: asked.append(nbytes) or allocate(nbytes))
    for n in range(10):
        computed(x, n)
    assert not asked
    held = [computed(x, n) for n in range(5)]
    assert len(asked) >= len(held) - 2


def test_what_is_kept_does_not_grow():
    x = mg.ones(24)
    before = 0
    for n in range(100):
        computed(x, n).tolist()  # an array lies on it, so that it does not serve again
        before = before or (n == 10 and pool.bytes_in_use)
    assert pool.bytes_in_use <= before + 1024  # a hundred would take more


def test_results_that_are_held_stay_as_they_are():
    x = mg.ones(24)
    held = [computed(x, n) for n in range(20)]
    assert [y[0].item() for y in held] == [float(n) for n in range(20)]


def test_arrays_and_views_of_results_stay_as_they_are():
    x = mg.ones(24)
    arrays, views, rows = [], [], []
    for n in range(10):
        arrays.append(computed(x, n).numpy())
        views.append(computed(x, n)[2:4])
        rows.append(memoryview(computed(x, n).numpy()))
    for n in range(10):
        assert arrays[n].tolist() == [float(n)] * 24
        assert views[n].tolist() == [float(n)] * 2
        assert rows[n].tolist() == [float(n)] * 24


def test_results_that_are_pending_inputs_stay_as_they_are():
    x = mg.ones(24)
    total = mg.zeros(24)
    for n in range(10):
        total = total + computed(x, n)  # nobody but what is pending holds the product
    assert total.tolist() == [45.0] * 24


def test_threads_that_run_one_program_do_not_share_results():
    x = mg.ones(24)
    computed(x, 0)
    wrong = []

    def work(n):
        for _ in range(200):
            y = computed(x, n)
            if y.tolist() != [float(n)] * 24:
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_arena_does_not_move_between_a_look_and_a_launch(monkeypatch):
    """Another thread's larger program would free the memory that this one is to run in."""
    locked = []
    look = arena.address

    def address(nbytes):
        locked.append(EXECUTOR.lock._is_owned())
        return look(nbytes)

    monkeypatch.setattr(arena, "address", address)
    x = mg.rand(33, 57)
    (mg.softmax(x @ x.T, 1) @ x).tolist()
    assert locked and all(locked)
