"""Kubeflow's driver and a task: its pod, and the key that its outputs are cached by.

Files and lines are those of kubeflow/pipelines at 7b70c7b, below backend/src/v2.
"""

import hashlib
import json
from decimal import Decimal

# Fields of KubernetesExecutorConfig that the backend reads: `extendPodSpecPatch` in driver/k8s.go:133, and
# compiler/argocompiler/container.go:594 for `podMetadata`. It reads no `enabledSharedMemory`.
READ = {
    *("pvcMount", "nodeSelector", "tolerations", "secretAsEnv", "configMapAsEnv", "imagePullSecret", "podMetadata"),
    *("activeDeadlineSeconds", "genericEphemeralVolume", "emptyDirMounts"),
}
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
                found[name] = f"{resources[kind]:g}{unit}"
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
    if "activeDeadlineSeconds" in settings:
        pod["activeDeadlineSeconds"] = int(settings["activeDeadlineSeconds"])
    assert set(settings) <= READ, "the backend ignores the others"
    metadata = {"name": component.lower(), **settings.get("podMetadata", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}


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
        claim = {"accessModes": one["accessModes"], "resources": {"requests": {"storage": one["size"]}}}
        if not one.get("defaultStorageClass"):
            claim["storageClassName"] = one["storageClassName"]
        pod["volumes"].append({"name": one["volumeName"], "ephemeral": {"volumeClaimTemplate": {"spec": claim}}})
        main["volumeMounts"].append({"name": one["volumeName"], "mountPath": one["mountPath"]})
    for one in settings.get("emptyDirMounts", ()):
        memory = {"medium": one["medium"], "sizeLimit": one["sizeLimit"]}
        pod["volumes"].append({"name": one["volumeName"], "emptyDir": memory})
        main["volumeMounts"].append({"name": one["volumeName"], "mountPath": one["mountPath"]})


def cache_key(container, component, inputs, outputs, claims):
    """The `CacheKey` as protojson writes it: cacheutils/cache.go:177 `GenerateCacheKey`, driver/cache.go:85.

    Variables of the environment, resources and the platform document are not part of it, but for the claims.

    Args:
        container: of the executor, with placeholders as the document has them.
        component: its specification.
        inputs: the inputs of the ExecutorInput. Defaults are missing: the launcher adds them.
        outputs: key -> artifact of the ExecutorInput.
        claims: names of the claims that are mounted.
    """
    artifacts = inputs.get("artifacts", {})
    parameters = component.get("outputDefinitions", {}).get("parameters", {})
    key = {
        "inputArtifactNames": {
            name: {"artifactNames": [one["name"] for one in listed["artifacts"]]} for name, listed in artifacts.items()
        },
        "inputParameterValues": inputs.get("parameterValues", {}),
        "outputArtifactsSpec": {
            name: {field: one[field] for field in ("name", "type", "metadata") if one.get(field)}
            for name, one in outputs.items()
        },
        "outputParametersSpec": {name: one["parameterType"] for name, one in parameters.items()},
        "containerSpec": {
            "image": container["image"],
            "cmdArgs": [*container["command"], *container.get("args", ())],
            "pvcNames": sorted(set(claims)),
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
