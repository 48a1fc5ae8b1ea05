"""Kubeflow's driver and a task: its pod, the key that its outputs are cached by, and what its metadata store returns.

Files and lines are those of kubeflow/pipelines at 7b70c7b, below backend/src/v2. `RULES` says which rules were compared
with what the real programs wrote (`tests/pipelines/recorded`, `test_emulator_recorded.py`), and which only read.
"""

import hashlib
import json
from decimal import ROUND_CEILING, Decimal

# Fields of KubernetesExecutorConfig that the backend reads: `extendPodSpecPatch` in driver/k8s.go:133, and
# compiler/argocompiler/container.go:594 for `podMetadata`. It reads no `enabledSharedMemory`.
READ = {
    *("pvcMount", "nodeSelector", "tolerations", "secretAsEnv", "configMapAsEnv", "imagePullSecret", "podMetadata"),
    *("activeDeadlineSeconds", "genericEphemeralVolume", "emptyDirMounts", "securityContext"),
}
# The versions whose rules differ: those of Kubeflow 1.10, Kubeflow 1.11, and the current one.
V2_5, V2_15, V2_17 = (2, 5), (2, 15), (2, 17)
_ALL = "2.17.0, 2.15.0, 2.5.0"
# Rule of the emulator -> how it is known, and of which versions.
RULES = {
    "the pod of a task: image, variables, resources, node, tolerations, volumes, deadline": (
        "recorded",
        "2.17.0, 2.5.0",
    ),
    "the cache key; 2.5 leaves out names of outputs and claims": ("recorded", _ALL),
    "inputs and outputs of an ExecutorInput; 2.5 gives outputs no names": ("recorded", "2.17.0, 2.5.0"),
    "metadata through the store: true is 1, a list and a struct are wrapped": ("recorded", "2.17.0, 2.5.0"),
    "the session of an object store in the metadata: minio:// and s3://": ("recorded", "2.17.0, 2.5.0"),
    "the session of an object store in the metadata: gs://": ("read", ""),
    "the final status of a run for an exit task: COMPLETE": ("recorded", "2.17.0"),
    "the final status is RUNNING if the launcher was killed in all attempts, or a driver failed": (
        "recorded",
        "2.17.0",
    ),
    "an exit task with a final status: 2.5 refuses the pipeline": ("recorded", "2.5.0, 2.4.0"),
    "the log of an attempt: executor-logs-N and kept of failures from 2.17 on, else executor-logs": ("recorded", _ALL),
    "the report of a command: next to the artifacts; 2.5 in /tmp/kfp_outputs": ("recorded", "2.17.0, 2.5.0"),
    "a command's exit code becomes 1 of the container": ("recorded", "2.17.0"),
    "the order of tasks, inner graphs, defaults of parameters": ("recorded", _ALL),
    "attempts: same output folder, new disk": ("read", ""),
    "the user of a pod, its capabilities and its seccomp profile, from 2.16 on": ("read", ""),
    "secrets and config maps that are missing, nodes that do not fit": ("read", ""),
    "placeholders of KFP's own container components": ("read", ""),
}
# The session of an object store, which the driver adds to the metadata of an artifact (objectstore/config.go).
_SESSION = {
    "accessKeyKey": "accesskey",
    "disableSSL": "true",
    "fromEnv": "false",
    "secretKeyKey": "secretkey",
    "secretName": "mlpipeline-minio-artifact",
}
_OF_SCHEME = {
    "minio": {**_SESSION, "endpoint": "seaweedfs.kubeflow:9000", "region": "minio"},
    "s3": {**_SESSION, "endpoint": "http://127.0.0.1:9000", "forcePathStyle": "true", "region": "us-east-1"},
    "gs": {"fromEnv": "true"},
}
_SUFFIXES = ("", "k", "M", "G", "T", "P", "E")
# From the task's specification: driver/driver.go:732 `provisionOutputs`; the default is to publish logs
# (compiler/argocompiler/container.go:142).
LOGS = {"executor-logs": {"artifactType": {"schemaTitle": "system.Artifact"}}}
_EXACT_ABOVE, _EXACT_BELOW = Decimal("1e-6"), Decimal("1e21")


def pod_of(component, spec, platform):
    """The pod of a component: driver/driver.go:248 `initPodSpecPatch`, then driver/k8s.go:133 `extendPodSpecPatch`."""
    label = spec["components"][component]["executorLabel"]
    container = spec["deploymentSpec"]["executors"][label]["container"]
    resources = container.get("resources", {})
    limits, requests = {}, {}
    for name, unit in (("cpu", ""), ("memory", "G")):
        for kind, found in ((f"{name}Limit", limits), (f"{name}Request", requests)):
            if kind in resources:
                found[name] = quantity(Decimal(repr(resources[kind])).scaleb(9 if unit else 0))
    requests = {name: requests[name] for name in sorted(requests)}
    if "accelerator" in resources:
        # The type is taken as the resource's name, whatever it is (driver/driver.go:407).
        limits[resources["accelerator"]["type"]] = resources["accelerator"]["count"]
    settings = executors_of(platform).get(label, {})
    main = {
        "name": "main",
        "image": container["image"],
        "command": container["command"],
        "args": container.get("args", []),
        "resources": {"limits": limits, "requests": requests},
        "volumeMounts": [{"name": claim, "mountPath": path} for claim, path in _claims(settings)],
    }
    pod = {
        "containers": [main],
        "volumes": [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim, _ in _claims(settings)],
        "tolerations": settings.get("tolerations", []),
    }
    if "nodeSelector" in settings:
        pod["nodeSelector"] = settings["nodeSelector"]["labels"]
    main["env"] = [*container.get("env", ()), *_referenced(settings)]
    _mount_others(settings, pod, main)
    if "imagePullSecret" in settings:
        pod["imagePullSecrets"] = [{"name": one["secretName"]} for one in settings["imagePullSecret"]]
    if "securityContext" in settings:
        # driver/k8s.go:749 of 2.17.0. Versions before 2.16 do not know the setting.
        main["securityContext"] = {**settings["securityContext"], "capabilities": {"drop": ["ALL"]}}
    if "activeDeadlineSeconds" in settings:
        pod["activeDeadlineSeconds"] = int(settings["activeDeadlineSeconds"])
    assert set(settings) <= READ, "the backend ignores the others"
    metadata = {"name": component.lower(), **settings.get("podMetadata", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}


def secured(pod):
    """The pod with what Kubeflow's compiler adds from 2.16 on: `security_context.go`, of templates of executors."""
    profile = {"seccompProfile": {"type": "RuntimeDefault"}}
    (main,) = pod["spec"]["containers"]
    own = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, **profile}
    main = {**main, "securityContext": {**own, **main.get("securityContext", {})}}
    return {**pod, "spec": {**pod["spec"], "securityContext": profile, "containers": [main]}}


def quantity(number):
    """A number as Kubernetes writes it (apimachinery/pkg/api/resource, `CanonicalizeBytes`)."""
    if number != number.to_integral_value():
        return f"{int(number.scaleb(3).to_integral_value(ROUND_CEILING))}m"
    whole, power = int(number), 0
    while whole and whole % 1000 == 0 and power < len(_SUFFIXES) - 1:
        whole, power = whole // 1000, power + 1
    return f"{whole}{_SUFFIXES[power]}"


def through_the_store(metadata, key, uri, version=V2_17):
    """Metadata of an artifact as the driver reads it back from ML Metadata, which knows numbers, texts and structs.

    Source: metadata/client.go, `RecordArtifact` and `toRuntimeArtifact`.
    """
    found = {name: _stored(value) for name, value in metadata.items()}
    # A folder stands for a bucket of Google's.
    scheme = uri.partition("://")[0] if "://" in uri else "gs"
    parameters = {**_OF_SCHEME[scheme], **({"maxRetries": "5"} if scheme != "gs" and version > V2_5 else {})}
    parameters = {name: parameters[name] for name in sorted(parameters)}
    session = json.dumps({"Provider": scheme, "Params": parameters}, separators=(",", ":"))
    return {"display_name": key, "store_session_info": session, **found}


def _stored(value):
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (dict, list)):
        return {"struct" if isinstance(value, dict) else "list": _numbers(value)}
    return _numbers(value)


def _numbers(value):
    """Go writes a number that is whole without a point."""
    if isinstance(value, dict):
        return {key: _numbers(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_numbers(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def executors_of(platform):
    """Executor label -> its `KubernetesExecutorConfig` (compiler/visitor.go:115)."""
    return platform.get("platforms", {}).get("kubernetes", {}).get("deploymentSpec", {}).get("executors", {})


def _claims(settings):
    """Name and path of each claim (driver/k8s.go:1233 `makeVolumeMountPatch`; the field `constant` is still read)."""
    return [(one["constant"], one["mountPath"]) for one in settings.get("pvcMount", ())]


def _referenced(settings):
    """Variables from Secrets and ConfigMaps (driver/k8s.go:349 and :445)."""
    for key, kind, owner, field in (
        ("secretAsEnv", "secretKeyRef", "secretName", "secretKey"),
        ("configMapAsEnv", "configMapKeyRef", "configMapName", "configMapKey"),
    ):
        for one in settings.get(key, ()):
            for pair in one["keyToEnv"]:
                yield {"name": pair["envVar"], "valueFrom": {kind: {"name": one[owner], "key": pair[field]}}}


def _mount_others(settings, pod, main):
    """Ephemeral volumes, and folders in memory (driver/k8s.go:548 and :596)."""
    for one in settings.get("genericEphemeralVolume", ()):
        claim = {
            "accessModes": one["accessModes"],
            "resources": {"requests": {"storage": quantity(Decimal(one["size"]))}},
        }
        if not one.get("defaultStorageClass"):
            claim["storageClassName"] = one["storageClassName"]
        pod["volumes"].append({"name": one["volumeName"], "ephemeral": {"volumeClaimTemplate": {"spec": claim}}})
        main["volumeMounts"].append({"name": one["volumeName"], "mountPath": one["mountPath"]})
    for one in settings.get("emptyDirMounts", ()):
        memory = {"medium": one["medium"], "sizeLimit": quantity(Decimal(one["sizeLimit"]))}
        pod["volumes"].append({"name": one["volumeName"], "emptyDir": memory})
        main["volumeMounts"].append({"name": one["volumeName"], "mountPath": one["mountPath"]})


def cache_key(container, component, inputs, outputs, claims, version=V2_17):
    """The `CacheKey` as protojson writes it: cacheutils/cache.go:177 `GenerateCacheKey`, driver/cache.go:85.

    Variables of the environment, resources and the platform document are not part of it, but for the claims.

    Args:
        container: of the executor, with placeholders as the document has them.
        component: its specification.
        inputs: the inputs of the ExecutorInput. Defaults are missing: the launcher adds them.
        outputs: key -> artifact of the ExecutorInput.
        claims: names of the claims that are mounted.
        version: of the driver.
    """
    names = ("name",) if version > V2_5 else ()
    artifacts = inputs.get("artifacts", {})
    parameters = component.get("outputDefinitions", {}).get("parameters", {})
    key = {
        "inputArtifactNames": {
            name: {"artifactNames": [one["name"] for one in listed["artifacts"]]} for name, listed in artifacts.items()
        },
        "inputParameterValues": inputs.get("parameterValues", {}),
        "outputArtifactsSpec": {
            name: {field: one[field] for field in (*names, "type", "metadata") if one.get(field)}
            for name, one in outputs.items()
        },
        "outputParametersSpec": {name: one["parameterType"] for name, one in parameters.items()},
        "containerSpec": {
            "image": container["image"],
            "cmdArgs": [*container["command"], *container.get("args", ())],
            "pvcNames": sorted(set(claims)) if version > V2_5 else [],
        },
    }
    key["containerSpec"] = {name: value for name, value in key["containerSpec"].items() if value}
    return {name: value for name, value in key.items() if value}


def fingerprint(key):
    """The SHA-256 that the cache is asked for: cacheutils/cache.go:147 `GenerateFingerPrint`."""
    return hashlib.sha256(go_json(key).encode()).hexdigest()


def go_json(value):
    """JSON as Go's encoding/json writes a decoded value: keys sorted, no spaces, numbers as float64, HTML escaped."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{go_json(key)}:{go_json(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(go_json, value)) + "]"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _go_number(Decimal(repr(float(value))))
    text = json.dumps(value, ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _go_number(number):
    if number == 0 or _EXACT_ABOVE <= abs(number) < _EXACT_BELOW:
        text = format(number, "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, _, exponent = format(number.normalize(), "e").partition("e")
    return f"{mantissa}e{int(exponent):+d}"
