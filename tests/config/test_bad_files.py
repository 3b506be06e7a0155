"""Every mistake in a file is reported by key and line, with what is allowed and what was meant."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from fairlane import Lane, Queue
from tests.config.world import FILE, World

DURATION = '"90s", "5m", "2h", "7d"'


class Bad(NamedTuple):
    """A file with one mistake on its last line, the key to be named, and words of the error."""

    text: str
    key: str
    words: tuple[str, ...]


def bad(text: str, key: str, *words: str) -> Bad:
    """Make a case."""
    return Bad(text, key, words)


TABLES = [
    bad("[que]\n", "que", "no such table", "did you mean 'queues'?", "Allowed: app, defaults, queues"),
    bad("[aps]\n", "aps", "did you mean 'app'?"),
    bad("[zzzzzz]\n", "zzzzzz", "there is no such table. "),
    bad("worker = 5\n", "worker", "it is not a table"),
    bad("queues = []\n", "queues", "it is not a table"),
    bad("[queues]\nbulk = 5\n", "queues.bulk", "it is not a table"),
    bad("[queues.bulk]\nlimits = 5\n", "queues.bulk.limits", "it is not a table"),
    bad("[tenants.acme]\nlimits = { bulk = 5 }\n", "tenants.acme.limits.bulk", "it is not a table"),
    bad("[tasks]\nsend = 5\n", "tasks.send", "it is not a table"),
    bad("[schedules]\nnightly = 5\n", "schedules.nightly", "it is not a table"),
]

KEYS = [
    bad(
        "[worker]\nleese = 5\n", "worker.leese", "no such key", "did you mean 'lease'?", "lease, renew_every"
    ),
    bad("[app]\nuri = 'x'\n", "app.uri", "did you mean 'url'?"),
    bad("[app]\ntennancy = 'open'\n", "app.tennancy", "did you mean 'tenancy'?"),
    bad("[app]\nname = 'x'\n", "app.name", "no such key"),
    bad("[defaults]\ntime_out = 5\n", "defaults.time_out", "did you mean 'timeout'?"),
    bad("[defaults]\ncolor = 'red'\n", "defaults.color", "no such key"),
    bad("[queues.bulk]\nmax_attemps = 5\n", "queues.bulk.max_attemps", "did you mean 'max_attempts'?"),
    bad("[queues.bulk]\nlimits = { runing = 1 }\n", "queues.bulk.limits.runing", "did you mean 'running'?"),
    bad("[lanes.high]\nslot = 5\n", "lanes.high.slot", "did you mean 'slots'?"),
    bad("[gates.screens]\nlimits = 5\n", "gates.screens.limits", "did you mean 'limit'?"),
    bad("[tasks]\nsend = { queue = 'x' }\n", "tasks.send.queue", "no such key"),
    bad("[tasks]\n'shop.mail' = { tiemout = 5 }\n", 'tasks."shop.mail".tiemout', "did you mean 'timeout'?"),
    bad("[tenants.'*']\nwieght = 1\n", 'tenants."*".wieght', "did you mean 'weight'?"),
    bad("[payload]\nmax_sise = 1\n", "payload.max_sise", "did you mean 'max_size'?"),
    bad("[errors]\nmesage = 500\n", "errors.mesage", "did you mean 'message'?"),
    bad("[retention]\ndead_unreviewd = 1\n", "retention.dead_unreviewd", "did you mean 'dead_unreviewed'?"),
]

NAMES = [
    bad("[queues.Bulk]\n", "queues.Bulk", "'Bulk' is not a legal queue name", "a-z, 0-9"),
    bad("[lanes.'a b']\n", 'lanes."a b"', "not a legal lane name"),
    bad("[gates.Screens]\nlimit = 1\n", "gates.Screens", "not a legal gate name"),
    bad("[tenants.'a b']\n", 'tenants."a b"', "not a legal tenant name", "without space"),
    bad("[tenants.'-x']\n", "tenants.-x", "not starting with -"),
    bad("[tenants.acme.limits.Bulk]\n", "tenants.acme.limits.Bulk", "not a legal queue name"),
    bad("[payload.categories]\nMail = []\n", "payload.categories.Mail", "not a legal category name"),
    bad("[tasks]\n'a b' = {}\n", 'tasks."a b"', "not a legal task name"),
]

SCALARS = [
    bad("[app]\ntenancy = 'closed'\n", "app.tenancy", "it is 'closed'", "open, required, declared"),
    bad("[app]\ntenancy = 1\n", "app.tenancy", "it is 1"),
    bad("[app]\nfixed_queues = 'yes'\n", "app.fixed_queues", "it is 'yes'", "true or false"),
    bad("[app]\nfixed_queues = 1\n", "app.fixed_queues", "true or false"),
    bad("[app]\npriority = 'lowest'\n", "app.priority", "higher_first, lower_first"),
    bad("[app]\npriority_default = 101\n", "app.priority_default", "it is 101", "-100 to 100"),
    bad("[app]\npriority_default = 1.5\n", "app.priority_default", "it is 1.5", "a whole number"),
    bad("[app]\nimport = ''\n", "app.import", "it is ''", "a text"),
    bad(
        "[defaults]\ntimeout = '5 parsecs'\n", "defaults.timeout", "it is '5 parsecs'", DURATION, 'or "none"'
    ),
    bad("[defaults]\ntimeout = '-5s'\n", "defaults.timeout", "it is '-5s'"),
    bad("[defaults]\ntimeout = 0.5\n", "defaults.timeout", "it is 0.5", "1 s to 86400 s"),
    bad("[defaults]\ntimeout = '25h'\n", "defaults.timeout", "1 s to 86400 s"),
    bad("[defaults]\ntimeout = true\n", "defaults.timeout", "it is True"),
    bad("[defaults]\ntimeout = inf\n", "defaults.timeout", "it is inf"),
    bad("[defaults]\ntimeout = nan\n", "defaults.timeout", "it is nan"),
    bad("[defaults]\ntimeout = 12:00:00\n", "defaults.timeout", DURATION),
    bad("[defaults]\nmax_attempts = 0\n", "defaults.max_attempts", "it is 0", "1 to 1000"),
    bad("[defaults]\nmax_attempts = true\n", "defaults.max_attempts", "it is True"),
    bad("[defaults]\nmax_attempts = 'none'\n", "defaults.max_attempts", "it is 'none'"),
    bad("[defaults]\ncost = 'money'\n", "defaults.cost", "it is 'money'", "jobs, seconds"),
    bad("[queues.bulk]\nmax_waiting = -1\n", "queues.bulk.max_waiting", "it is -1", "0 or more"),
    bad("[queues.bulk.limits]\nwaiting = -1\n", "queues.bulk.limits.waiting", "it is -1"),
    bad("[queues.bulk.limits]\nwaiting = '5'\n", "queues.bulk.limits.waiting", "it is '5'", "a whole number"),
    bad("[queues.bulk.limits]\non_full = 'drop'\n", "queues.bulk.limits.on_full", "warn, reject"),
    bad("[worker]\nmax_jobs = 0\n", "worker.max_jobs", "it is 0", "1 or more"),
    bad("[worker]\nmax_crashes = 0\n", "worker.max_crashes", "it is 0", "1 to 5"),
    bad("[worker]\nmax_crashes = 6\n", "worker.max_crashes", "it is 6", "1 to 5"),
    bad("[worker]\nmax_abandoned = -1\n", "worker.max_abandoned", "it is -1", "0 or more"),
    bad('[worker]\nstalled_after = "0.5s"\n', "worker.stalled_after", "it is", "1 s or more"),
    bad('[worker]\nsigint = "now"\n', "worker.sigint", "it is 'now'", "graceful, immediate"),
    bad('[worker]\nunknown_task = "drop"\n', "worker.unknown_task", "it is 'drop'", "hand_back, fail"),
    bad("[defaults]\nstuck_after = 0\n", "defaults.stuck_after", "it is 0"),
    bad("[queues.bulk]\non_stuck = 'retry'\n", "queues.bulk.on_stuck", "it is 'retry'", "dead, requeue"),
    bad("[defaults]\nstuck_after = '31d'\n", "defaults.stuck_after", "it is '31d'", "1 s to 2592000 s"),
    bad("[queues.bulk]\nstuck_after = 'none'\n", "queues.bulk.stuck_after", "it is 'none'"),
    bad("[tasks]\nsend = { stuck_after = 'x' }\n", "tasks.send.stuck_after", "it is 'x'", DURATION),
    bad("[tasks]\nsend = { on_stuck = 'kill' }\n", "tasks.send.on_stuck", "it is 'kill'", "dead, requeue"),
    bad("[worker]\nlease = 0.5\n", "worker.lease", "it is 0.5", "1 s or more"),
    bad("[worker]\nlease = 4\n", "worker.lease", "the lease would expire", "renew_every below lease"),
    bad(
        "[worker]\nrenew_every = '12s'\n",
        "worker.renew_every",
        "the lease would expire",
        "renew_every below lease",
    ),
    bad("[payload]\nmax_size = '1TB'\n", "payload.max_size", "it is '1TB'", '"10KB", "1MB", "1GB"'),
    bad("[payload]\nmax_size = '1mb'\n", "payload.max_size", "it is '1mb'"),
    bad("[payload]\nmax_size = 1.5\n", "payload.max_size", "it is 1.5"),
    bad("[worker]\nduties = 'on'\n", "worker.duties", "true or false"),
    bad("[payload]\nmax_size = 0\n", "payload.max_size", "it is 0"),
    bad("[payload]\nmax_depth = 1000\n", "payload.max_depth", "it may be 1 to"),
    bad("[payload]\ncheck_types = 'yes'\n", "payload.check_types", "true or false"),
    bad("[payload]\nsensitive = 'refuse'\n", "payload.sensitive", "allow, warn, reject"),
    bad("[payload]\nrequire = 'correlation_id'\n", "payload.require", "a list of"),
    bad("[payload]\nrequire = ['tenant']\n", "payload.require", "correlation_id, idempotency_key"),
    bad("[payload.categories]\nmail = 'to'\n", "payload.categories.mail", "it is 'to'", "a list of"),
    bad("[payload.categories]\nmail = [5]\n", "payload.categories.mail", "5"),
    bad("[payload]\ncategories = ['mail']\n", "payload.categories", "it is not a table"),
    bad("[errors]\nmessage = 99\n", "errors.message", "it is 99", "100 to 2000"),
    bad("[errors]\nmessage = 2001\n", "errors.message", "it is 2001", "100 to 2000"),
    bad("[errors]\ntraceback = -1\n", "errors.traceback", "it is -1", "0 to 16000"),
    bad("[errors]\ntraceback = 'none'\n", "errors.traceback", "it is 'none'", "a whole number"),
    bad("[retention]\nresults = 'for ever'\n", "retention.results", DURATION),
    bad("[retention]\ndead_from = 'review'\n", "retention.dead_from", "decision, death"),
    bad("[dead_letters]\nalert_above = -1\n", "dead_letters.alert_above", "it is -1", 'or "none"'),
    bad("[dead_letters]\nkey = '{job}'\n", "dead_letters.key", "it is '{job}'", "{key}, {n}, {time}, {id}"),
    bad("[dead_letters]\nkey = '{n!r}'\n", "dead_letters.key", "it is '{n!r}'"),
    bad("[dead_letters]\nkey = '{n:5}'\n", "dead_letters.key", "it is '{n:5}'"),
    bad("[dead_letters]\nkey = '{n'\n", "dead_letters.key", "it is '{n'"),
    bad("[dead_letters]\nkey = '{key}-again'\n", "dead_letters.key", "each new job would get the same"),
    bad("[doctor]\nmax_ready = -1\n", "doctor.max_ready", "it is -1", 'a whole number, 0 or more, or "none"'),
    bad("[doctor]\nmin_workers = 'one'\n", "doctor.min_workers", "it is 'one'", "0 or more"),
    bad("[events]\nmost = 0\n", "events.most", "it is 0", "1 to 1000000"),
    bad("[events]\nkeep = '59s'\n", "events.keep", "it is '59s'", "60 s or more"),
    bad("[audit]\nkeep = '1h'\n", "audit.keep", "it is '1h'", "86400 s or more"),
    bad("[web]\nport = 65536\n", "web.port", "it is 65536", "0 to 65535"),
    bad("[web]\nhost = ''\n", "web.host", "it is ''", "a text"),
    bad("[web]\nprefix = 'jobs'\n", "web.prefix", "it is 'jobs'", "a path as /jobs", 'or "none"'),
    bad("[web]\nprefix = '/jobs/'\n", "web.prefix", "it is '/jobs/'"),
    bad("[web]\nprefix = '/a/../b'\n", "web.prefix", "it is '/a/../b'"),
    bad("[web]\nallowed_hosts = ['a b']\n", "web.allowed_hosts", "it is ['a b']", "a host name"),
    bad("[web]\nallowed_hosts = ['a.org:80']\n", "web.allowed_hosts", "it is ['a.org:80']"),
    bad("[web]\nallowed_hosts = 'a.org'\n", "web.allowed_hosts", "it is 'a.org'", "a list of"),
    bad("[web]\ntrusted_proxies = ['proxy']\n", "web.trusted_proxies", "it is ['proxy']", "10.0.0.7"),
    bad("[web]\ntrusted_proxies = ['0.0.0.0/0']\n", "web.trusted_proxies", "it covers every address"),
    bad("[web]\ntrusted_proxies = [7]\n", "web.trusted_proxies", "it is [7]"),
    bad("[web]\nbasic_auth = 'yes'\n", "web.basic_auth", "it is 'yes'", "true or false"),
    bad(
        "[web]\nuser_header = 'X User'\n", "web.user_header", "it is 'X User'", "a header that the proxy sets"
    ),
    bad("[web]\nuser_header = 'Cookie'\n", "web.user_header", "a client sets this header itself"),
    bad(
        "[web]\nuser_header = 'X-User'\n",
        "web.user_header",
        "nobody's header is believed without web.trusted_proxies",
        "the addresses of the proxy",
    ),
    bad("[web]\nuser_header_role = 'viewer'\n", "web.user_header_role", "there is no web.user_header"),
    bad("[web]\nsee_dead_letters = 'boss'\n", "web.see_dead_letters", "it is 'boss'", "viewer, operator"),
    bad(
        "[web]\nreview_dead_letters = 'operator'\n",
        "web.review_dead_letters",
        "who decides about dead letters must see them",
        "manager or a role above it",
    ),
    bad("[web]\nrate = { limit = 0 }\n", "web.rate", "limit in it is 0"),
    bad("[web]\nmax_body = 0\n", "web.max_body", "it is 0"),
    bad("[web]\nstatement_limit = 0\n", "web.statement_limit", "it is 0", "0.1 s to 60 s"),
    bad("[web]\nreplica_url = 'sqlite:///x.db'\n", "web.replica_url", "it is not a PostgreSQL URL"),
    bad("[retention]\nnewest_finished = 0\n", "retention.newest_finished", "it is 0", "1 to 100000"),
    bad("[retention]\nnewest_dead = 100001\n", "retention.newest_dead", "1 to 100000", '"none"'),
    bad("[retention.tasks]\n'a b' = 5\n", 'retention.tasks."a b"', "use 1 to 200 of A-Z"),
    bad("[retention.tenants]\nacme = 'long'\n", "retention.tenants.acme", DURATION),
    bad("[queues.bulk]\n[retention.queues]\nbluk = 5\n", "retention.queues.bluk", "did you mean 'bulk'?"),
    bad("[archive]\nto = ''\n", "archive.to", "a folder, or a URL such as s3://bucket/jobs"),
    bad("[archive]\ncompress = 'zip'\n", "archive.compress", "gzip, none"),
    bad("[archive]\nformat = 'csv'\n", "archive.format", "jsonl, parquet"),
    bad("[retention]\nstore_limit = '20 crates'\n", "retention.store_limit", '"10KB"', '"none"'),
    bad("[retention]\nattempts_per_job = 0\n", "retention.attempts_per_job", "it is 0", "1 to 100"),
    bad("[retention]\nattempts_per_job = 101\n", "retention.attempts_per_job", "it is 101", "1 to 100"),
    bad("[retention]\nattempts_per_job = '5'\n", "retention.attempts_per_job", "a whole number"),
    bad("[tenants.acme]\nweight = 0\n", "tenants.acme.weight", "it is 0", "0.01 to 1000"),
    bad("[tenants.acme]\nlabels = { plan = 5 }\n", "tenants.acme.labels", "'plan' has 5"),
    bad("[tenants.acme]\nlabels = []\n", "tenants.acme.labels", "it is []", "a table of texts"),
]

POLICIES = [
    bad("[queues.b]\nrate = 50\n", "queues.b.rate", "it is 50", "limit = 50"),
    bad("[queues.b]\nrate = { per = 'minute' }\n", "queues.b.rate", "limit is missing"),
    bad("[queues.b]\nrate = { limit = 0 }\n", "queues.b.rate", "limit in it is 0", "1 or more"),
    bad("[queues.b]\nrate = { limit = 1, per = 'week' }\n", "queues.b.rate", "per in it is 'week'", "minute"),
    bad(
        "[queues.b]\nrate = { limit = 1, bursts = 2 }\n", "queues.b.rate", "'bursts'", "did you mean 'burst'?"
    ),
    bad("[queues.b.limits]\nrate = { limit = 'x' }\n", "queues.b.limits.rate", "limit in it is 'x'"),
    bad("[queues.b]\nretry = 5\n", "queues.b.retry", "it is 5", 'kind = "exponential"'),
    bad("[queues.b]\nretry = {}\n", "queues.b.retry", "kind is missing"),
    bad("[queues.b]\nretry = { base = 5 }\n", "queues.b.retry", "kind is missing"),
    bad("[queues.b]\nretry = { kind = 'expo' }\n", "queues.b.retry", "kind in it is 'expo'"),
    bad("[queues.b]\nretry = { kind = 'delay' }\n", "queues.b.retry", "did you mean 'delays'?"),
    bad(
        "[queues.b]\nretry = { kind = 'exponential', jiter = 1 }\n",
        "queues.b.retry",
        "did you mean 'jitter'?",
    ),
    bad("[queues.b]\nretry = { kind = 'exponential', jitter = 2 }\n", "queues.b.retry", "jitter in it is 2"),
    bad("[queues.b]\nretry = { kind = 'exponential', cap = 'x' }\n", "queues.b.retry", "cap in it is 'x'"),
    bad(
        "[queues.b]\nretry = { kind = 'exponential', floor = 9, cap = 5 }\n", "queues.b.retry", "cap", "floor"
    ),
    bad("[queues.b]\nretry = { kind = 'delays' }\n", "queues.b.retry", "at least one delay"),
    bad("[queues.b]\nretry = { kind = 'list', delays = [1, 'x'] }\n", "queues.b.retry", "delays in it"),
    bad("[queues.b]\nretry = { kind = 'never', base = 1 }\n", "queues.b.retry", "there is no key 'base'"),
    bad(
        "[queues.b]\nretry = { rate_limit = { kind = 'never' } }\n",
        "queues.b.retry",
        "there is no error class 'rate_limit'",
        "did you mean 'rate_limited'?",
    ),
    bad("[queues.b]\nretry = { timeout = { kind = 'nevr' } }\n", "queues.b.retry", "did you mean 'never'?"),
    bad("[tasks]\nsend = { gate = 'My Gate' }\n", "tasks.send.gate", "it is 'My Gate'"),
    bad("[tasks]\nsend = { on_bad_result = 'keep' }\n", "tasks.send.on_bad_result", "drop, dead"),
    bad("[tasks]\nsend = { isolation = 'thread' }\n", "tasks.send.isolation", "auto, process"),
    bad("[tasks]\nsend = { max_memory = 'much' }\n", "tasks.send.max_memory", "bytes as a number"),
    bad("[worker]\nchildren = 0\n", "worker.children", "1 or more"),
    bad("[worker]\nchild_max_age = '0s'\n", "worker.child_max_age", "1 s or more"),
    bad("[tasks]\nsend = { timeout = 'x' }\n", "tasks.send.timeout", "it is 'x'"),
    bad("[gates.screens]\n", "gates.screens", "limit must be given, unless the gate has a rate"),
    bad("[gates.screens]\nlimit = -1\n", "gates.screens.limit", "it is -1"),
]

LANES = [
    bad("[lanes.a]\nslots = 5\n", "lanes.a", "queues is missing"),
    bad("[lanes.a]\nqueues = ['default']\n", "lanes.a", "slots is missing"),
    bad("[lanes.a]\nqueues = ['default']\nslots = 0\n", "lanes.a.slots", "it is 0"),
    bad("[lanes.a]\nslots = 1\nqueues = []\n", "lanes.a.queues", "it is []", "a list of queue names"),
    bad("[lanes.a]\nslots = 1\nqueues = 'default'\n", "lanes.a.queues", "it is 'default'"),
    bad(
        "[lanes.a]\nslots = 1\nqueues = ['Default']\n",
        "lanes.a.queues",
        "'Default' in it is not a legal name",
    ),
    bad("[lanes.a]\nslots = 1\nqueues = { x = 'y' }\n", "lanes.a.queues", "a table of weights"),
    bad("[lanes.a]\nslots = 1\nqueues = { x = { wait = 1 } }\n", "lanes.a.queues", "there is no key 'wait'"),
    bad("[lanes.a]\nslots = 1\nqueues = ['x']\norder = 'random'\n", "lanes.a.order", "weighted, strict"),
    bad("[lanes.a]\nslots = 1\nqueues = ['x', 'x']\n", "lanes.a", "names that occur once"),
    bad("[lanes.a]\nqueues = ['x']\nslots = 2\nheadroom = 2\n", "lanes.a", "below the lane's 2 slots"),
    bad("[lanes.a]\nslots = 2\nqueues = { x = { min_share = 0.5 } }\n", "lanes.a", 'order="strict"'),
    bad("[schedules.Nightly]\ncron = '@daily'\n", "schedules.Nightly", "is not a legal schedule name"),
    bad("[schedules.a]\ncorn = '@daily'\n", "schedules.a.corn", "did you mean 'cron'?"),
    bad("[schedules.a]\ncron = '0 25 * * *'\n", "schedules.a.cron", "hour '25' is not allowed"),
    bad("[schedules.a]\ncron = '@daily'\nevery = 5\n", "schedules.a.every", "is given together with cron"),
    bad("[schedules.a]\nevery = '0.5s'\n", "schedules.a.every", "1 s or more"),
    bad("[schedules.a]\nevery = 5\ntimezone = 'Berlin'\n", "schedules.a.timezone", "Europe/Berlin"),
    bad("[schedules.a]\nevery = 5\nbetween = ['09:30']\n", "schedules.a.between", "two times of day"),
    bad("[schedules.a]\nevery = 5\nbetween = ['9h', '10:00']\n", "schedules.a.between", "'9h'"),
    bad("[schedules.a]\nevery = 5\nholidays = 'none'\n", "schedules.a.holidays", "a list of dates"),
    bad("[schedules.a]\nevery = 5\nholidays = [5]\n", "schedules.a.holidays", "a list of dates"),
    bad("[schedules.a]\nevery = 5\ncatch_up = 0\n", "schedules.a.catch_up", '"latest"'),
    bad("[schedules.a]\nat = 5\n", "schedules.a.at", "2026-11-25T18:00"),
    bad("[schedules.a]\nevery = 5\narguments = 5\n", "schedules.a.arguments", "a table"),
    bad("[schedules.a]\nevery = 5\noverlap = 'never'\n", "schedules.a.overlap", "queue_one"),
]

ALL = [*TABLES, *KEYS, *NAMES, *SCALARS, *POLICIES, *LANES]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.key)
def test_a_mistake_is_named_by_key_and_line_with_what_is_allowed(world: World, case: Bad) -> None:
    """So that whoever made it can mend it without reading anything else."""
    error = world.error(case.text)
    message = str(error)
    assert error.key == case.key
    assert f"{case.key}: " in message
    assert "?." not in message
    assert [word for word in case.words if word not in message] == []
    assert error.source.partition(":")[0] == str(world.folder / FILE)
    line = error.source.rpartition(":")[2]
    named = case.text.splitlines()[int(line) - 1]
    assert any(part in named for part in case.key.replace('"', "").split("."))


def test_there_are_many_cases() -> None:
    """The table is the heart of this: it must not shrink unseen."""
    assert len(ALL) > 100


def test_the_line_is_that_of_the_key_itself(world: World) -> None:
    """Counted from one, with comments and blank lines."""
    error = world.error("# first\n\n[worker]\nmax_jobs = 2\n\nlease = 'x'\n")
    assert error.source.endswith(f"{FILE}:6")
    inline = world.error("[tenants.acme]\nweight = 1\nlimits.bulk = { running = -1 }\n")
    assert (inline.key, inline.source.rpartition(":")[2]) == ("tenants.acme.limits.bulk.running", "3")


def test_all_mistakes_are_told_at_once(world: World) -> None:
    """In files, in the environment and on the command line; the first one gives the error its key."""
    world.environ = {"FAIRLANE_WORKER__LEASE": "none"}
    configuration = world.configuration("[worker]\nleese = 1\nduties = 5\n[que]\n")
    configuration.use(options={"--max-jobs": ("worker.max_jobs", "-1")})
    with pytest.raises(Exception, match="the configuration has 5 problems:") as caught:
        _ = configuration.settings
    lines = str(caught.value).splitlines()[1:]
    assert [line.split(":")[0].strip() for line in lines] == [
        "worker.leese",
        "que",
        "worker.duties",
        "worker.lease",
        "worker.max_jobs",
    ]
    assert "(from FAIRLANE_WORKER__LEASE)" in lines[3]
    assert "(from --max-jobs)" in lines[4]


QUEUES = [Queue("bulk"), Queue("mail")]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[lanes.a]\nslots = 1\nqueues = ['blk']\n", "lanes.a.queues"),
        ("[tenants.acme.limits.blk]\nrunning = 1\n", "tenants.acme.limits.blk"),
    ],
)
def test_a_queue_that_nobody_declares_is_most_likely_misspelled(world: World, text: str, key: str) -> None:
    """Known are those of the code and those of the file."""
    error = world.error(text, queues=QUEUES)
    assert error.key == key
    assert "queue blk is not declared; did you mean 'bulk'?" in str(error)
    assert error.allowed == "bulk, default, mail"
    assert world.error(f"[queues.bulk]\n{text}").key == key
    assert world.settings(f"[queues.blk]\n{text}", queues=QUEUES).queue("blk") == Queue("blk")


def test_a_lane_of_the_code_is_not_held_against_the_queues_of_a_file(world: World) -> None:
    """Where only tasks name queues, tuning one of them must not shut out the others."""
    settings = world.settings("[queues.bulk]\ntimeout = 5\n", lanes=[Lane("main", 1, ["mail"])])
    assert settings.has_open_queues


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[worker\n", "it is not valid TOML (at line 1"),
        ("a = 1\na = 2\n", "it is not valid TOML"),
        ("password = 'hunter2\n", "it is not valid TOML (at "),
        ("x = " + "[" * 5000, "it is not valid TOML"),
    ],
)
def test_what_is_no_toml_is_refused_without_showing_it(world: World, text: str, words: str) -> None:
    """The file is named, and the line where that is known."""
    error = world.error(text)
    assert (error.key, error.source) == ("config", str(world.folder / FILE))
    assert words in str(error)
    assert "hunter2" not in str(error)
