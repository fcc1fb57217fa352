"""docs/deploy.md and examples/cluster: what readers copy is what Ray, Kubernetes and a shell take."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
EXAMPLES = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "examples" / "cluster").iterdir()}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)


CLUSTER = yaml.safe_load(EXAMPLES["machines.yaml"])
JOB, POLICY = yaml.safe_load_all(EXAMPLES["kubernetes.yaml"])


def test_ray_takes_the_cluster() -> None:
    pytest.importorskip("ray")
    from ray.autoscaler._private.util import prepare_config, validate_config

    config: Any = prepare_config(CLUSTER)
    validate_config(config)
    assert config["provider"]["worker_ips"] == CLUSTER["provider"]["worker_ips"]
    assert CLUSTER["max_workers"] == len(CLUSTER["provider"]["worker_ips"])


def test_options_of_ray_exist() -> None:
    pytest.importorskip("ray")
    from ray.scripts import scripts

    text = "\n".join([PAGE.partition("## Containers")[0], *EXAMPLES.values()])
    used = set(re.findall(r"(?<![\w-])--(?!nproc|max-restarts|het-group|cpus-per|consume|wire|gen)[a-z][a-z-]+", text))
    used -= {"--workers", "--job-name", "--time", "--nodes", "--ntasks-per-node", "--gpus-per-node", "--ip-address"}
    assert used - {name for parameter in scripts.start.params for name in parameter.opts} == set()
    assert {"start", "stop", "get-auth-token", "up", "down"} <= set(scripts.cli.commands)


def test_the_manifest_is_of_one_piece() -> None:
    spec = JOB["spec"]["rayClusterSpec"]
    head, (group,) = spec["headGroupSpec"], spec["workerGroupSpecs"]
    assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
    assert head["rayStartParams"]["num-cpus"] == "0"
    label, version = POLICY["spec"]["podSelector"]["matchLabels"], spec["rayVersion"]
    assert POLICY["spec"]["ingress"][0]["from"][0]["podSelector"]["matchLabels"] == label
    for template in (head["template"], group["template"]):
        assert template["metadata"]["labels"] == label
        (container,) = template["spec"]["containers"]
        assert container["image"].endswith(f":{version}")
        assert container["resources"]["requests"] == container["resources"]["limits"]
        assert [each["name"] for each in container["volumeMounts"]] == [
            each["name"] for each in template["spec"]["volumes"]
        ]
    gpus = head["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]
    assert f"--nproc-per-node {gpus} " in JOB["spec"]["entrypoint"]
    assert JOB["spec"]["entrypointNumGpus"] == int(gpus)
    assert f"rayproject/ray:{version}-" in blocks("dockerfile")[0]


@pytest.mark.process
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_scripts_are_read_by_bash() -> None:
    for script in (EXAMPLES["slurm.sh"], *blocks("sh")):
        found = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True)
        assert (found.returncode, found.stderr) == (0, "")


def test_figures() -> None:
    nbytes = 224 * 224 * 3
    for figure in (f"{nbytes:,} bytes as uint8", f"{4 * nbytes:,} as float32", f"carry {10e9 / 8 // nbytes:,.0f}"):
        assert figure in " ".join(PAGE.split())
