"""Random histories: arrivals, late parts, concurrent runners, crashes, zombies, changed definitions.

A runner is a generator that stops at every point where something else may happen in between. The
scheduler advances runners in random order, drops some for good (a crash: the lease stays until it
expires) and leaves others lying long enough to become zombies.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from random import Random

from partwise.ledger.catalog import settled
from partwise.ledger.facts import LedgerFacts
from partwise.ledger.ledger import Ledger
from partwise.ledger.open import in_memory
from partwise.ledger.read import pin as pins
from partwise.ledger.read.pin import DefinitionChanged, Pin
from partwise.ledger.write.commit import Content, Entry
from partwise.ledger.write.leases import Busy, Fenced, Lease
from partwise.parts import FOREVER, Parts
from tests.simulation import timed
from tests.simulation.checks import check_due, check_end, check_ready, pending_by_hand, revisions_at
from tests.simulation.forward import Said, at_versions, note_turned, repin, repins_seen, with_forward
from tests.simulation.graphs import changed_model, random_model
from tests.simulation.keyed import look_up, with_keyed
from tests.simulation.policies import note_released, with_policies
from tests.simulation.rolling import with_rolling
from tests.simulation.samples import check_samples, with_samples, without_samples
from tests.simulation.world import KEYS, Conflict, Model, Storage, Value, compute, content, merged, required, with_key

LEASE = 20.0
Runner = Generator[str, None, None]


@dataclass
class Rules:
    """Ways to break the protocol, one at a time, to see that the simulation notices."""

    pin_before_lease: bool = False  # rule 2
    trust_the_plan: bool = False  # rule 3
    no_early_stop: bool = False  # rule 5
    no_adoption: bool = False  # rules 7 and 8
    adopt_as_of_now: bool = False  # rule 8
    current_fingerprint: bool = False  # rule 11: recorded is the definition of now, not the one used
    same_rows_make_no_commit: bool = False  # of rolling tables
    stale_worker_checks: bool = True  # rule 11: the worker's definition is compared at the pin
    merge_twice: bool = False  # a merge starts from what the inputs held before their last change
    new_keys_only: bool = False  # of a changed dimension: keys that it had before do not count
    no_second_look: bool = False  # parts that change after changed keys were looked up do not count
    merge_over_anything: bool = False  # a merge does not look at what the content was computed from


@dataclass
class History:
    rng: Random
    model: Model
    ledger: Ledger
    storage: Storage = field(default_factory=Storage)
    rules: Rules = field(default_factory=Rules)
    now: float = 1000.0
    landing: dict[str, dict[int, Value]] = field(default_factory=dict)
    runners: list[Runner] = field(default_factory=list)
    failing: float = 0.0
    retention: bool = False
    changing: float = 0.005  # how often somebody edits a definition
    requesting: bool = False  # somebody asks for parts that are fresh, too
    rebuilding: float = 0.0  # how often a table is lost, and made again
    rebuilt: int = 0
    policies: int | None = None  # the seed of random refresh policies
    published: bool = False  # their readers do not wait
    released: set[tuple[str, int]] = field(default_factory=set)  # by a policy that fired
    samples: int | None = None  # the seed of which views have samples
    rolling: int | None = None  # the seed of which views keep only their newest part
    forward: int | None = None  # the seed of forward dimensions
    keyed: int | None = None  # the seed of views that meet a dimension by keys
    turned: bool = False  # they are retroactive just now
    forward_since: dict[str, int] = field(default_factory=dict)
    timed: int | None = None  # the seed of a dimension whose rows are valid for a time
    repinning: float = 0.0  # how often somebody says which version counts for a time range
    said: list[Said] = field(default_factory=list)
    models: list[Model] = field(default_factory=list)
    requested: set[tuple[str, int]] = field(default_factory=set)
    recorded: dict[tuple[str, int, int], tuple[object, int]] = field(default_factory=dict)
    computations: int = 0
    merges: int = 0
    merging: Random = field(default_factory=lambda: Random(1))  # of its own: whoever merges, the rest happens as before
    problems: list[str] = field(default_factory=list)

    # -- what happens outside ---------------------------------------------------------------------

    def arrive(self, name: str | None = None) -> None:
        """New parts, mostly in order; changed, emptied or repeated ones; a new dimension."""
        if name is None:
            name = self.rng.choice([t.name for t in self.model.graph.tables.values() if t.kind != "view"])
        parts = self.landing.setdefault(name, {})
        value = self.rng.choice((None, 0, 1, 2))
        if self.model.graph[name].timed:
            parts[0] = timed.another(parts.get(0), self.rng)
        elif self.model.graph[name].kind == "dimension":
            if self.keyed is not None:  # one key gets another value, or is gone
                value = with_key(parts.get(0), self.rng.choice(KEYS), self.rng.choice((0, 1, 2)))
            parts[0] = value
        elif not parts or self.rng.random() < 0.55:
            newest = max(parts, default=self.rng.randint(1, 6))
            parts[newest + (self.rng.choice((1, 1, 1, 1, 2)) if parts else 0)] = value
        elif self.rng.random() < 0.3:
            parts[self.rng.randint(min(parts) - 1, max(parts))] = value  # a gap, or before the first
        else:
            parts[self.rng.choice(sorted(parts))] = value

    # -- writers ----------------------------------------------------------------------------------

    def ingest(self, name: str, parts: Parts | None = None) -> Runner:
        """Bring a source up to what has landed."""
        yield from ()
        try:
            held = self.ledger.take(name, f"ingest-{self.rng.random()}", LEASE, self.now)
        except Busy:
            return
        yield "leased"
        try:
            yield from self.adopt(held)
            own = self.ledger.current(name)
            there = self.storage[name, own.generation].at(own.version)
            # A version nobody has told the ledger about would have been adopted: read at the known one.
            landed = self.landing.get(name, {}).items()
            floor = self.floor(name)
            new = {p: v for p, v in landed if p >= floor and (p not in there or there[p] != v)}
            if not new:
                self.ledger.release(held, self.now)
                return
            yield "read"
            entry = Entry(
                name,
                own.generation,
                self.model.graph[name].fingerprint,
                None,
                None,
                {p: content(v) for p, v in new.items()},
                times=timed.changed(there[0], new[0]) if self.model.graph[name].timed and there else None,
            )
            if self.keyed is not None and name == "d" and 0 in there:
                entry = replace(entry, met=look_up(self, there[0], new[0]))
                yield "looked up"
                if self.rng.random() < 0.5:
                    # Meanwhile parts change, and are computed with what is about to be replaced.
                    self.arrive(
                        self.rng.choice([t.name for t in self.model.graph.tables.values() if t.kind == "source"])
                    )
                    self.calm(1)
            version = self.storage.commit(name, own.generation, own.version, new, entry)
            yield "committed"
            self.ledger.commit(held, entry, version, self.now)
        except (Conflict, Fenced):
            return

    def adopt(self, held: Lease) -> Iterator[str]:
        own = self.ledger.current(held.table)
        stored = self.storage[held.table, own.generation]
        first = 0 if own.version is None else own.version + 1
        orphans = [(v, stored.versions[v][1]) for v in range(first, len(stored.versions))]
        if self.rules.adopt_as_of_now:
            seq = 10**6 if not orphans else self.sequence()
            orphans = [(v, entry and replace(entry, pin=None if entry.pin is None else seq)) for v, entry in orphans]
        if orphans and not self.rules.no_adoption:
            for done, (_, entry) in zip(self.ledger.adopt(held, orphans, self.now), orphans, strict=False):
                assert entry is not None
                if done.changed or done.unchanged:
                    self.register(entry)
            yield "adopted"

    def step(self, name: str, asked: Parts | None, model: Model) -> Runner:
        """One step of a view, by a worker whose definitions are `model` (perhaps old ones)."""
        yield from ()
        early: Pin | None = None
        if self.rules.pin_before_lease:
            early = self.pin_without_lease(name, asked)
            yield "pinned"
        try:
            held = self.ledger.take(name, f"step-{self.rng.random()}", LEASE, self.now)
        except Busy:
            return
        yield "leased"
        try:
            yield from self.adopt(held)
            fingerprint = model.graph[name].fingerprint if self.rules.stale_worker_checks else None
            note_released(self, name)
            pin = early or self.ledger.pin(held, self.now, asked, fingerprint, limit=self.rng.choice((1, 2, 5, 100)))
            if pin is None:
                self.ledger.release(held, self.now)
                return
            if self.rules.trust_the_plan and asked is not None:
                pin = Pin(
                    pin.seq,
                    pin.table,
                    pin.start,
                    pin.due | (asked & pin.reach),
                    pin.reach,
                    pin.own,
                    pin.inputs,
                    pin.before,
                    "",
                )
            self.check_pin(pin)
            with self.ledger.database.reading() as r:
                starts = {t: settled(r, t).start for t in pin.inputs}
            salt = model.salts[name] if fingerprint is None else self.salt_of(fingerprint)
            lengths = {t.name: t.length for t in self.model.graph.tables.values()}
            yield "pinned"
            new, parts = yield from self.compute(held, pin, salt, name, starts, lengths)
            if not parts:
                self.ledger.release(held, self.now)
                return
            entry = pin.entry(parts)
            if fingerprint is None:
                entry = replace(entry, fingerprint=model.graph[name].fingerprint)
            version = None
            same = {c.digest for c in pin.before.values()} if self.rules.same_rows_make_no_commit else set()
            if any(not pin.same(j, c) and c.digest not in same for j, c in parts.items()):
                changed = {j: v for j, v in new.items() if not pin.same(j, parts[j])}
                gone = max(parts) if pin.table.rolling else -(2**62)
                version = self.storage.commit(name, pin.own.generation, pin.own.version, changed, entry, gone)
            yield "committed"
            if self.rules.current_fingerprint:
                entry = replace(entry, fingerprint=self.model.graph[name].fingerprint)
            self.ledger.commit(held, entry, version, self.now)
            self.register(entry, pin)
        except (Conflict, Fenced, DefinitionChanged):
            return

    def compute(
        self, held: Lease, pin: Pin, salt: int, name: str, starts: dict[str, int | None], lengths: dict[str, int]
    ) -> Generator[str, None, tuple[dict[int, Value], dict[int, Content]]]:
        tables = {t: self.storage[t, v.generation].at(v.version) for t, v in pin.inputs.items()}
        tables |= at_versions(self, pin)
        own = dict(self.storage[name, pin.own.generation].at(pin.own.version))
        new: dict[int, Value] = {}
        parts: dict[int, Content] = {}
        walk = pin.walk()
        repairing = self.merging.random() < 0.6
        for j in walk:
            if self.rng.random() < self.failing:
                self.ledger.fail(held, pin, j, self.rng.choice(("check", "query")), "failed", self.now)
                walk.failed(j)
                continue
            try:
                now = timed.seen(pin.table, pin.start, j, lengths, tables)
                value = compute(
                    pin.table, salt, pin.start, j, starts, lambda t, p, now=now: own[p] if t == name else now[t][p]
                )
                if repairing and j in own and (then := self.before(pin, j, tables)) is not None:
                    then = timed.seen(pin.table, pin.start, j, lengths, then)
                    was = compute(pin.table, salt, pin.start, j, starts, lambda t, p, then=then: then[t][p])
                    value = merged(own[j], was, value)
                    self.merges += 1
            except KeyError:
                self.problems.append(f"{name}[{j}] reads a part that is not there")
                walk.failed(j)
                continue
            self.computations += 1
            own[j] = new[j] = value
            parts[j] = content(value)
            if self.rules.no_early_stop or not pin.same(j, parts[j]):
                walk.changed(j)
            if self.rng.random() < 0.1:
                yield "computing"
        return new, parts

    def before(self, pin: Pin, j: int, tables: dict[str, dict[int, Value]]) -> dict[str, dict[int, Value]] | None:
        """What the inputs held when part j was computed, if changes since then can be merged into it."""
        past = next((past for past in pin.past if j in past.parts), None)
        table = pin.table
        if table.self_references or table.optional or table.initial != table.inputs:
            return None
        if past is None:
            return tables if self.rules.merge_over_anything else None
        then = {t: self.storage[t, v.generation].at(v.version) for t, v in past.inputs.items()}
        if self.rules.merge_twice:
            then |= {t: self.storage[t, v.generation].at(v.version - 1) for t, v in pin.inputs.items() if v.version}
        for t, span in required(table, pin.start, j):
            for p in range(span.lo, span.hi + 1):
                if p not in then[t]:
                    return None
                if then[t][p] != tables[t][p] and p not in past.changed[t] and not self.rules.merge_twice:
                    self.problems.append(f"{table.name}[{j}]: nobody says that {t}[{p}] has changed")
        return then

    def floor(self, name: str) -> int:
        """What arrives for an expired part is quarantined, not loaded."""
        with self.ledger.database.reading() as r:
            found = settled(r, name).floor
            return -FOREVER if found is None else found

    def sequence(self) -> int:
        with self.ledger.database.reading() as r:
            return r.seq

    def salt_of(self, fingerprint: str) -> int:
        return int(fingerprint.split(":")[0])

    def pin_without_lease(self, name: str, asked: Parts | None) -> Pin | None:
        lease = Lease(name, 0, "")
        with self.ledger.database.reading() as r:
            keep, pins.check = pins.check, lambda *_: None
            try:
                return pins.pin(r, self.ledger._catalog, lease, self.now, asked, None, 100)
            finally:
                pins.check = keep

    def retain(self, name: str) -> Runner:
        """Remove old parts, never more than is allowed."""
        yield from ()
        try:
            held = self.ledger.take(name, f"retain-{self.rng.random()}", LEASE, self.now)
        except Busy:
            return
        yield "leased"
        try:
            yield from self.adopt(held)
            limit = self.ledger.may_expire(name, self.now)
            own = self.ledger.current(name)
            if own.version is None or limit <= -FOREVER:
                self.ledger.release(held, self.now)
                return
            floor = limit - self.rng.randint(0, 3)
            entry = Entry(name, own.generation, "", None, floor=floor)
            yield "read"
            version = self.storage.commit(name, own.generation, own.version, {}, entry, gone=floor)
            yield "committed"
            self.ledger.commit(held, entry, version, self.now)
        except (Conflict, Fenced):
            return

    def rebuild(self, name: str) -> Runner:
        """Somebody lost a table and has it made again."""
        yield from ()
        try:
            held = self.ledger.take(name, f"rebuild-{self.rng.random()}", LEASE, self.now)
        except Busy:
            return
        yield "leased"
        try:
            self.ledger.rebuild_again(held, self.now)
            self.rebuilt += 1
            self.ledger.release(held, self.now)
        except Fenced:
            return

    # -- what must hold at all times --------------------------------------------------------------

    def register(self, entry: Entry, pin: Pin | None = None) -> None:
        """Nothing is recorded twice for the same inputs: each computation has a cause of its own."""
        if entry.pin is None or entry.start is None:
            return
        with self.ledger.database.reading() as r:
            for j in entry.parts:
                # The first part is computed by another query: a sample whose view begins earlier has another first one.
                made_from: tuple[object, ...] = (entry.fingerprint, revisions_at(r, self, entry, j), j == entry.start)
                if self.forward is not None:  # whether dimensions counted forward by its pin; of an orphan nobody knows
                    made_from += (object() if pin is None else tuple(sorted(pin.forward.items())),)
                    made_from += (repins_seen(self, r, entry.table, j, entry.pin),)
                last, seq = self.recorded.get((entry.table, entry.generation, j), (None, 0))
                # Two runners at once, the first with an expired lease, may both compute a part. That is
                # a price of zombies; to begin after another has recorded the same is not.
                if last == made_from and seq <= entry.pin and (entry.table, j) not in self.requested:
                    self.problems.append(f"{entry.table}[{j}] was computed again from the same inputs")
                self.recorded[entry.table, entry.generation, j] = (made_from, r.seq)
                self.released.discard((entry.table, j))

    def check_pin(self, pin: Pin) -> None:
        if pin.table.patience is not None or self.rng.random() < 0.5 or self.published:
            return
        pending = pending_by_hand(self)
        for j in pin.due:
            for name, span in required(pin.table, pin.start, j):
                bad = [p for p in range(span.lo, span.hi + 1) if (name, p) in pending and name != pin.table.name]
                if bad:
                    self.problems.append(f"{pin.table.name}[{j}] is computed while {name}{bad} is pending")

    # -- the scheduler ----------------------------------------------------------------------------

    def play(self, length: int) -> None:
        for _ in range(length):
            self.now += self.rng.choice((0, 0, 0, 1, 1, 5, LEASE + 5 if self.rng.random() < 0.1 else 1))
            if self.repinning and self.rng.random() < self.repinning:
                repin(self)
            action = self.rng.random()
            if action < 0.20:
                for _ in range(self.rng.choice((1, 1, 2, 4))):
                    self.arrive()
            elif action < 0.32:
                self.start(self.ingest(self.a_table("source")))
            elif action < 0.52:
                self.start_step()
            elif action < 0.54:
                self.calm()
            elif action < 0.54 + self.changing:
                if self.forward is not None and self.rng.random() < 0.3:
                    self.turned = not self.turned
                self.model = self.ruled(changed_model(self.rng, without_samples(self.model)))
                self.models.append(self.model)
                self.ledger.define(self.model.graph, self.now)
                note_turned(self)
            elif action < 0.555 + self.changing and self.retention:
                self.start(self.retain(self.rng.choice(sorted(self.model.graph.tables))))
            elif action < 0.58 + self.changing and self.requesting:
                self.request()
            elif action < 0.58 + self.changing + self.rebuilding and self.rebuilding:
                self.start(self.rebuild(self.rng.choice(sorted(self.model.graph.tables))))
            elif self.runners:
                self.advance()

    def ruled(self, model: Model) -> Model:
        if self.forward is not None:
            model = with_forward(model, self.forward, self.turned)
        if self.timed is not None:
            model = timed.with_timed(model, self.timed)
        if self.keyed is not None:
            model = with_keyed(model, self.keyed)
        if self.policies is not None:
            model = with_policies(model, self.policies, self.published)
        if self.rolling is not None:
            model = with_rolling(model, self.rolling)
        return model if self.samples is None else with_samples(model, self.samples)

    def request(self) -> None:
        """Ask for some parts of a view, built or not, as a backfill does."""
        name, first = self.a_table("view"), self.rng.randint(0, 12)
        asked = self.ledger.request(name, Parts.of((first, first + self.rng.randint(0, 4))), self.now)
        self.requested |= {(name, j) for j in asked}

    def calm(self, rounds: int = 6) -> None:
        """A while without trouble: everything that is free and ready gets done."""
        for _ in range(rounds):
            for table in self.model.graph.tables.values():
                if table.kind != "view":
                    self.finish(self.ingest(table.name))
            steps = self.ledger.plan(self.now).steps
            if not steps:
                break
            for step in self.rng.sample(steps, len(steps)):
                self.finish(self.step(step.table, Parts.of(step.parts), self.model))

    def finish(self, runner: Runner) -> None:
        for _ in runner:
            pass

    def start(self, runner: Runner) -> None:
        self.runners.append(runner)

    def a_table(self, kind: str) -> str:
        return self.rng.choice(
            [t.name for t in self.model.graph.tables.values() if (t.kind == "view") == (kind == "view")]
        )

    def start_step(self) -> None:
        steps = self.ledger.plan(self.now).steps
        # Events repeat and come late: a step may be requested twice, or for a table with nothing to do.
        model = self.model if self.rng.random() < 0.85 else self.rng.choice(self.models)
        for _ in range(self.rng.choice((1, 1, 1, 2))):
            if steps and self.rng.random() < 0.85:
                chosen = self.rng.choice(steps)
                self.start(self.step(chosen.table, Parts.of(chosen.parts), model))
            else:
                self.start(self.step(self.a_table("view"), None, model))

    def advance(self) -> None:
        runner = self.rng.choice(self.runners)
        if self.rng.random() < 0.06:
            self.runners.remove(runner)
            runner.close()
            return
        for _ in range(self.rng.choice((1, 1, 2, 10, 10))):
            if next(runner, None) is None:
                self.runners.remove(runner)
                return

    def settle(self) -> None:
        """Let everything come to rest: zombies finish or die, then run until nothing is ready."""
        self.failing = 0.0
        while self.runners:
            self.now += self.rng.choice((0, 1, LEASE + 1))
            self.advance()
        self.ledger.define(self.model.graph, self.now)
        for _ in range(3):
            self.run_until_done()
            for name in self.model.graph.order:  # what was committed last may still be unknown to the ledger
                held = self.ledger.take(name, "end", LEASE, self.now)
                for _ in self.adopt(held):
                    pass
                self.ledger.release(held, self.now)
                self.now += LEASE + 1
            if not self.ledger.plan(self.now).steps:  # an orphan may be old, and what reads it
                break

    def run_until_done(self) -> None:
        for _ in range(400):
            self.now += LEASE + 1000
            for table in self.model.graph.tables.values():
                if table.kind != "view":
                    self.finish(self.ingest(table.name))
            self.retry_failed()
            steps = self.ledger.plan(self.now).steps
            if not steps:
                return
            for step in self.rng.sample(steps, len(steps)):
                self.finish(self.step(step.table, Parts.of(step.parts), self.model))
        self.problems.append("it does not come to an end")

    def retry_failed(self) -> None:
        with self.ledger.database.reading() as r:
            failures = LedgerFacts(r).failures()
        for name, parts in failures.items():
            if name in self.model.graph.tables:
                self.ledger.request(name, Parts.single(*parts), self.now)
                self.requested |= {(name, j) for j in parts}


def new_history(seed: int, rules: Rules | None = None, **options: object) -> History:
    rng = Random(seed)
    model = random_model(rng)
    if (forward := options.get("forward")) is not None:
        model = with_forward(model, forward)  # type: ignore[arg-type]
    if (seed_of_times := options.get("timed")) is not None:
        model = timed.with_timed(model, seed_of_times)  # type: ignore[arg-type]
    if (keyed := options.get("keyed")) is not None:
        model = with_keyed(model, keyed)  # type: ignore[arg-type]
    if (policies := options.get("policies")) is not None:
        model = with_policies(model, policies, bool(options.get("published")))  # type: ignore[arg-type]
    if (rolling := options.get("rolling")) is not None:
        model = with_rolling(model, rolling)  # type: ignore[arg-type]
    if (samples := options.get("samples")) is not None:
        model = with_samples(model, samples)  # type: ignore[arg-type]
    history = History(rng, model, in_memory(), rules=rules or Rules(), models=[model], **options)  # type: ignore[arg-type]
    history.ledger.define(model.graph, history.now)
    note_turned(history)
    return history


def run_history(seed: int, rules: Rules | None = None, swap: bool = True, rebuilding: bool = False) -> History:
    """One whole history with all its checks. Every third has failing checks, every fourth retention, and in
    every tenth definitions change often; every seventh has refresh policies, every sixth rolling tables, every sixth a
    dimension that is joined by keys, every fifth of the others samples."""
    often = 0.05 if seed % 10 == 5 else 0.005
    options: dict[str, object] = {"policies": seed, "published": seed % 14 == 6} if seed % 7 == 6 else {}
    options |= {"rolling": seed} if seed % 6 == 1 else {}
    options |= {"keyed": seed} if seed % 6 == 3 else {}
    options |= {"samples": seed} if seed % 5 == 3 and seed % 6 != 3 else {}
    history = new_history(
        seed, rules, failing=0.0 if seed % 3 else 0.1, retention=seed % 4 == 3, changing=often, **options
    )
    history.requesting = seed % 5 == 2
    history.rebuilding = 0.03 if rebuilding else 0.0
    history.storage.swap = swap
    return to_its_end(history)


def to_its_end(history: History) -> History:
    """Six spells of random events, each checked; then all work is done, and everything is compared with the oracle."""
    for _ in range(6):
        history.play(20)
        check_due(history)
        check_ready(history)
        if history.problems:
            return history
    history.settle()
    check_end(history)
    if history.samples is not None and not history.retention:
        check_samples(history)
    return history
