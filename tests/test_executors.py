"""Blocks of individuals in threads, processes, on Dask and on Spark: the same bits everywhere."""

import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest
from joint_cases import EPSILON as JOINT_EPSILON
from joint_cases import MODELS as JOINT_MODELS
from joint_cases import joint_coupling
from test_cells import MODEL, OPTIONS, databases, visits
from test_evaluation import EPSILON, MODELS, same

import edp_bayes as edp
from edp_bayes.auditing.evaluation import canonical_blocks, evaluate
from edp_bayes.auditing.executors.base import Work, running
from edp_bayes.auditing.executors.worker import Shipment, received, task
from edp_bayes.auditing.executors.worker import evaluate as evaluate_bytes
from edp_bayes.coupling.views.published import ReleasedCoupling
from edp_bayes.coupling.views.some_individuals import taken
from edp_bayes.distributions.published import Published
from edp_bayes.exceptions import ExecutorError, InputTypeError, InvalidInputError
from edp_bayes.models.sampling import SamplerSettings

PEOPLE = 300


@pytest.fixture(scope="module")
def couplings():
    rng = np.random.default_rng(7)
    c = rng.gamma(2.0, 0.05, (30, PEOPLE)) * (rng.random((30, PEOPLE)) < 0.1)
    c[:, 2], c[:, 3] = 0.5 + 0.1 * rng.standard_normal(30), 5.0 * rng.standard_normal(30)
    names = [f"secret {k:03}" for k in rng.permutation(PEOPLE)]
    data = edp.Responses.from_arrays(
        20.0 + rng.standard_normal(30) + c.sum(axis=1), contribution=c, individual=names
    )
    settings = SamplerSettings(draws=20, tune=50, chains=2, random_seed=1, progressbar=False)
    full = {name: model.fit(data, settings).coupling for name, model in MODELS.items()}
    rounded = ReleasedCoupling(full["mixture"], Published.of(rounded_to=1.0))
    some = replace(rounded, people=np.arange(0, PEOPLE, 7))
    return {**full, "rounded": rounded, "rounded for some": some}


@pytest.fixture(scope="module")
def copies(couplings):
    return np.random.default_rng(3).integers(0, PEOPLE, couplings["mixture"].n_draws)


@pytest.fixture(scope="module")
def expected(couplings, copies):
    return {
        name: evaluate(coupling, EPSILON, progressbar=False, copies=copies)
        for name, coupling in couplings.items()
    }


@pytest.fixture(scope="module")
def joint():
    couplings = [joint_coupling(model, people=150, draws=5) for model in JOINT_MODELS]
    return [
        (
            coupling,
            {
                k: evaluate(coupling, JOINT_EPSILON, progressbar=False, exact_up_to=k)
                for k in (1, 150)
            },
        )
        for coupling in couplings
    ]


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="module")
def dask():
    distributed = pytest.importorskip("distributed")
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with (
        distributed.LocalCluster(n_workers=2, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def java():
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java") or (home and shutil.which(f"{home}/bin/java"))


@pytest.fixture(scope="module")
def spark():
    pytest.importorskip("pyspark")
    if not java():
        pytest.skip("Spark needs Java, which is not installed")
    with pytest.MonkeyPatch.context() as patch, running_session(patch) as session:
        yield session


def running_session(patch):
    from edp_bayes.auditing.executors.on_spark import connected

    patch.setenv("PYSPARK_PYTHON", sys.executable)
    patch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.ui.enabled=false pyspark-shell")
    return connected("local[2]")


EXECUTORS = {
    "one thread": lambda request: 1,
    "three threads": lambda request: 3,
    "pool of threads": lambda request: ThreadPoolExecutor(2),
    "processes": lambda request: request.getfixturevalue("processes"),
    "dask": lambda request: request.getfixturevalue("dask"),
    "spark": lambda request: request.getfixturevalue("spark"),
}


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
@pytest.mark.parametrize("executor", EXECUTORS.values(), ids=EXECUTORS)
def test_every_executor_gives_the_same_bits(executor, request, couplings, expected, copies):
    with running(executor(request)) as run:
        for name, coupling in couplings.items():
            found = evaluate(coupling, EPSILON, progressbar=False, copies=copies, run=run)
            same(expected[name], found)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
@pytest.mark.parametrize("executor", EXECUTORS.values(), ids=EXECUTORS)
def test_every_executor_gives_the_same_bits_of_several_queries(executor, request, joint):
    with running(executor(request)) as run:
        for coupling, expected in joint:
            for exact_up_to, risks in expected.items():
                found = evaluate(
                    coupling, JOINT_EPSILON, progressbar=False, run=run, exact_up_to=exact_up_to
                )
                same(risks, found)


@pytest.fixture(scope="module")
def cells():
    return audited_cells(None)


def audited_cells(executor):
    return edp.audit_cells(
        databases(visits(moves=True)), edp.queries.Count(), by="region", epsilon=[0.1, 0.3],
        delta=0.3, model=MODEL, executor=executor, **OPTIONS,
    ).everything  # fmt: skip


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
@pytest.mark.parametrize("executor", EXECUTORS.values(), ids=EXECUTORS)
def test_every_executor_gives_the_same_cells(executor, request, cells):
    pd.testing.assert_frame_equal(audited_cells(executor(request)), cells)


@pytest.mark.full
def test_an_audit_of_counts_in_processes_has_the_same_numbers(processes):
    here = np.random.default_rng(5).random((40, 30)) < 0.4
    counts = edp.Responses.from_arrays(here.sum(axis=1), contribution=here, step=1)
    options = {"epsilon": [0.1, 0.5], "random_seed": 1, "progressbar": False, "draws": 25}
    one, other = (edp.audit(counts, executor=run, **options) for run in (None, processes))
    np.testing.assert_array_equal(one.delta, other.delta)
    np.testing.assert_array_equal(one.individual_delta, other.individual_delta)


@pytest.mark.full
def test_an_address_of_a_scheduler_will_do(dask, couplings, expected, copies):
    address = dask.scheduler.address
    with running(address) as run:
        coupling = couplings["bootstrap"]
        found = evaluate(coupling, EPSILON, progressbar=False, copies=copies, run=run)
    same(expected["bootstrap"], found)


def test_a_worker_of_dask_that_is_killed_changes_nothing(dask, couplings, expected, copies):
    coupling = couplings["mixture"]
    pids = list(dask.run(os.getpid).values())

    def run(work, blocks):
        with running(dask) as runner:
            for k, found in enumerate(runner(work, blocks)):
                if k == 0:
                    os.kill(pids[0], signal.SIGKILL)
                yield found

    same(
        expected["mixture"], evaluate(coupling, EPSILON, progressbar=False, copies=copies, run=run)
    )
    assert set(pids) != set(dask.run(os.getpid).values())


def test_a_process_that_is_killed_is_one_error_of_ours(couplings):
    with ProcessPoolExecutor(1) as pool, running(pool) as run:
        os.kill(pool.submit(os.getpid).result(), signal.SIGKILL)
        with pytest.raises(ExecutorError, match="a worker process was lost"):
            evaluate(couplings["bootstrap"], EPSILON, progressbar=False, run=run)


def test_workers_get_no_labels_and_only_what_a_block_needs(couplings):
    coupling = couplings["mixture"]
    load = Shipment(Work(coupling, EPSILON))
    few, many = (load.block(np.arange(size)) for size in (10, PEOPLE))
    for sent in (load.shared, few, many):
        assert b"secret" not in sent
    draws = coupling.mixture.weights.nbytes
    assert 3 * draws < len(load.shared) < 3 * draws + 2000
    assert len(few) < 10_000
    pairs = coupling.presence.responses.contribution.nnz
    assert len(many) < len(few) + 12 * pairs + 150 * PEOPLE


def test_what_all_blocks_share_is_sent_once(couplings, monkeypatch):
    """The floor of bounds has a number for each draw and epsilon."""
    monkeypatch.setattr("edp_bayes.coupling.views.some_individuals.SHARED_BYTES", 1)
    bounded = couplings["mixture"].bounded(EPSILON)
    plain, load = (Shipment(Work(of, EPSILON)) for of in (couplings["mixture"], bounded))
    blocks = canonical_blocks(np.arange(PEOPLE))
    assert len(load.shared) > len(plain.shared) + bounded.floor.nbytes
    assert len(load.block(blocks[0])) < len(plain.block(blocks[0])) + 100
    here = evaluate(bounded, EPSILON, progressbar=False)
    for members in blocks:
        found = received(evaluate_bytes(load.shared, load.block(members)))
        np.testing.assert_array_equal(found.mean, here.mean[members])


def test_what_is_sent_is_a_function_of_the_block_alone(couplings):
    for coupling in couplings.values():
        load = Shipment(Work(coupling, EPSILON))
        members = canonical_blocks(np.arange(PEOPLE))[1]
        assert load.block(members) == load.block(members)
        first, second = (
            received(evaluate_bytes(load.shared, load.block(part)))
            for part in (members, members[5:6])
        )
        np.testing.assert_array_equal(first.mean[5:6], second.mean)
        np.testing.assert_array_equal(first.median[5:6], second.median)


def test_blocks_go_to_spark_in_waves_that_the_driver_can_hold(couplings, monkeypatch):
    from edp_bayes.auditing.executors import on_spark

    work = Work(couplings["mixture"], EPSILON)
    each = 8 * work.coupling.n_draws * EPSILON.size * 19
    parts = [b"x" * 1000, b"y" * 1000, b"z" * 10**6, b"u", b"v", b"w"]
    monkeypatch.setattr(on_spark, "MOST_BYTES", 2 * (each + 1000))
    monkeypatch.setattr(on_spark, "MOST_BLOCKS", 2)
    assert list(on_spark.waves(work, parts)) == [parts[:2], parts[2:3], parts[3:5], parts[5:]]
    assert list(on_spark.waves(work, [])) == []


WITHOUT = """
import importlib.abc, pickle, sys
class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "edp_bayes":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
function = pickle.loads(sys.stdin.buffer.read())
print(function(b"", b""))
"""


def test_a_worker_without_the_package_says_how_to_install_it():
    cloudpickle = pytest.importorskip("cloudpickle")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], input=cloudpickle.dumps(task()), capture_output=True
    )
    said = done.stdout.decode().strip()
    assert "No module named 'edp_bayes'" in said, done.stderr
    with pytest.raises(ExecutorError, match=f"install edp_bayes=={edp.__version__} there"):
        received(said)


def test_a_worker_with_another_version_is_refused(monkeypatch):
    monkeypatch.setattr(edp, "__version__", "0.0.9")
    function = task()
    monkeypatch.undo()
    said = (
        f"has edp_bayes {edp.__version__}, which may give other numbers: install edp_bayes==0.0.9"
    )
    with pytest.raises(ExecutorError, match=said):
        received(function(b"", b""))


CONNECT = """
import pickle, sys
sys.path.insert(0, sys.argv[1])
from pyspark.sql import SparkSession
from test_cells import MODEL, OPTIONS, databases, visits
from test_evaluation import EPSILON
from edp_bayes.auditing.evaluation import evaluate
from edp_bayes.auditing.executors.base import running

session = SparkSession.builder.remote("local[2]").getOrCreate()
coupling, copies = pickle.loads(sys.stdin.buffer.read())
with running(session) as run:
    found = evaluate(coupling, EPSILON, progressbar=False, copies=copies, run=run)
sys.stdout.buffer.write(b"FOUND" + pickle.dumps(found))
sys.stdout.flush()
session.stop()
"""


@pytest.mark.full
def test_spark_connect_gives_the_same_bits(couplings, expected, copies):
    pytest.importorskip("grpc")
    pytest.importorskip("pyspark")
    if not java():
        pytest.skip("a server of Spark Connect needs Java, which is not installed")
    coupling = taken(couplings["bootstrap"], np.arange(PEOPLE))
    done = subprocess.run(
        [sys.executable, "-c", CONNECT, os.path.dirname(__file__)],
        input=pickle.dumps((coupling, copies)),
        capture_output=True,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        timeout=300,
    )
    assert b"FOUND" in done.stdout, done.stderr.decode()[-2000:]
    same(expected["bootstrap"], pickle.loads(done.stdout.partition(b"FOUND")[2]))


@pytest.mark.parametrize(
    ("home", "message"),
    [("", "needs Java, which was not found: install OpenJDK 17"), ("/none", "bin/java in JAVA_HO")],
)
def test_spark_without_java_says_so(home, message, monkeypatch):
    pytest.importorskip("pyspark")
    monkeypatch.setenv("PATH", "/none/bin")
    monkeypatch.setenv("JAVA_HOME", home)
    with pytest.raises(InvalidInputError, match=rf"executor local\[1\] .*{message}"):
        running("local[1]").__enter__()
    y = np.random.default_rng(1).normal(size=30)
    responses = edp.Responses.from_arrays(y, contribution=0.1 * y)
    with pytest.raises(InvalidInputError, match="sc://"):
        edp.audit(responses, epsilon=[0.1], executor="local[1]", draws=50, progressbar=False)


@pytest.mark.parametrize(
    ("package", "address"), [("distributed", "tcp://nobody:1"), ("pyspark.sql", "sc://nobody:1")]
)
def test_a_package_that_is_missing_is_named(package, address, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    extra = "dask" if package == "distributed" else "spark"
    with pytest.raises(InvalidInputError, match=rf"install edp_bayes\[{extra}\]"):
        running(address).__enter__()


def test_a_server_of_spark_that_does_not_answer_is_refused_at_once():
    pytest.importorskip("pyspark.sql")
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"sc://127.0.0.1:{taken.getsockname()[1]}/;user_id=me"
        with pytest.raises(ExecutorError, match=r"no Spark at sc://.*:\d+ does not answer"):
            running(address).__enter__()


@pytest.mark.parametrize(
    ("executor", "error", "message"),
    [
        (0, InvalidInputError, "executor must be at least 1, found 0"),
        (True, InputTypeError, "executor must be a number of threads, .* found bool"),
        ([2], InputTypeError, "or the address of one, found list"),
        ("4", InvalidInputError, r"a number of threads or an address .* found '4'"),
        ("locals", InvalidInputError, r"local\[2\]\), found 'locals'"),
    ],
)
def test_what_is_no_executor_is_refused_before_anything_is_fitted(executor, error, message):
    y = np.random.default_rng(1).normal(size=30)
    responses = edp.Responses.from_arrays(y, contribution=0.1 * y)
    with pytest.raises(error, match=message):
        edp.audit(responses, epsilon=[0.1], executor=executor, draws=50, progressbar=False)
