"""When a component is started again."""

from partwise.serve.supervise.restarts import LONGEST, STEADY, TRIES, Record, delay


def after(ends: int, record: Record = Record(), ran: float = 1.0) -> Record:
    for _ in range(ends):
        record = record.ended(ran)
    return record


def test_it_waits_longer_each_time_but_never_very_long() -> None:
    worked = Record().ready()
    assert [delay(after(n, worked)) for n in (1, 2, 3, 4)] == [1, 2, 4, 8]
    assert delay(after(50, worked)) == LONGEST


def test_whoever_ran_for_long_starts_quickly_again() -> None:
    assert delay(after(6, Record().ready()).ended(STEADY)) == 1


def test_what_never_came_up_is_given_up() -> None:
    assert delay(after(TRIES - 1)) is not None
    assert delay(after(TRIES)) is None


def test_what_has_worked_is_never_given_up() -> None:
    assert delay(after(1000, Record().ready())) is not None
