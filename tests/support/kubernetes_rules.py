"""What Kubernetes and its controllers ask of manifests: the pods that Kubeflow makes of a document, and JobSets."""

import re

import kubernetes_validate

VERSION = "1.33"
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
# Of api/jobset/v1alpha2/jobset_types.go.
_JOBSET_SPEC = {"replicatedJobs", "network", "successPolicy", "failurePolicy", "suspend", "ttlSecondsAfterFinished"}
# Fields of KubernetesExecutorConfig that backend/src/v2 of kubeflow/pipelines reads (7b70c7b): `extendPodSpecPatch` in
# driver/k8s.go, and compiler/argocompiler/container.go for `podMetadata`. It reads no `enabledSharedMemory`.
_READ = {
    *("pvcMount", "nodeSelector", "tolerations", "secretAsEnv", "configMapAsEnv", "imagePullSecret", "podMetadata"),
    *("activeDeadlineSeconds", "genericEphemeralVolume", "emptyDirMounts"),
}
_NETWORK = {"enableDNSHostnames", "subdomain", "publishNotReadyAddresses"}


def strictly(manifest):
    """`kubernetes-validate --strict`."""
    kubernetes_validate.validate(manifest, VERSION, strict=True)


def pod_of(component, spec, platform):
    """The pod of a component, as initPodSpecPatch and extendPodSpecPatch of Kubeflow's driver make it."""
    label = spec["components"][component]["executorLabel"]
    container = spec["deploymentSpec"]["executors"][label]["container"]
    resources = container.get("resources", {})
    limits, requests = {}, {}
    for name, unit in (("cpu", ""), ("memory", "G")):
        for kind, found in ((f"{name}Limit", limits), (f"{name}Request", requests)):
            if kind in resources:
                found[name] = f"{resources[kind]:g}{unit}"
    if "accelerator" in resources:
        # The type is taken as the resource's name, whatever it is.
        limits[resources["accelerator"]["type"]] = resources["accelerator"]["count"]
    executors = platform.get("platforms", {}).get("kubernetes", {}).get("deploymentSpec", {}).get("executors", {})
    told = executors.get(label, {})
    mounts = told.get("pvcMount", [])
    main = {
        "name": "main",
        "image": container["image"],
        "command": container["command"],
        "args": container["args"],
        "resources": {"limits": limits, "requests": requests},
        "volumeMounts": [{"name": one["constant"], "mountPath": one["mountPath"]} for one in mounts],
    }
    pod = {
        "containers": [main],
        "volumes": [{"name": m["constant"], "persistentVolumeClaim": {"claimName": m["constant"]}} for m in mounts],
        "tolerations": told.get("tolerations", []),
    }
    if "nodeSelector" in told:
        pod["nodeSelector"] = told["nodeSelector"]["labels"]
    main["env"] = [*container.get("env", ()), *_referenced(told)]
    _mount_others(told, pod, main)
    if "imagePullSecret" in told:
        pod["imagePullSecrets"] = [{"name": one["secretName"]} for one in told["imagePullSecret"]]
    if "activeDeadlineSeconds" in told:
        pod["activeDeadlineSeconds"] = int(told["activeDeadlineSeconds"])
    assert set(told) <= _READ, "the backend ignores the others"
    metadata = {"name": component.lower(), **told.get("podMetadata", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}


def _referenced(told):
    for key, kind, owner, field in (
        ("secretAsEnv", "secretKeyRef", "secretName", "secretKey"),
        ("configMapAsEnv", "configMapKeyRef", "configMapName", "configMapKey"),
    ):
        for one in told.get(key, ()):
            for pair in one["keyToEnv"]:
                yield {"name": pair["envVar"], "valueFrom": {kind: {"name": one[owner], "key": pair[field]}}}


def _mount_others(told, pod, main):
    """Ephemeral volumes, and folders in memory."""
    for one in told.get("genericEphemeralVolume", ()):
        claim = {"accessModes": one["accessModes"], "resources": {"requests": {"storage": one["size"]}}}
        if not one.get("defaultStorageClass"):
            claim["storageClassName"] = one["storageClassName"]
        pod["volumes"].append({"name": one["volumeName"], "ephemeral": {"volumeClaimTemplate": {"spec": claim}}})
        main["volumeMounts"].append({"name": one["volumeName"], "mountPath": one["mountPath"]})
    for one in told.get("emptyDirMounts", ()):
        memory = {"medium": one["medium"], "sizeLimit": one["sizeLimit"]}
        pod["volumes"].append({"name": one["volumeName"], "emptyDir": memory})
        main["volumeMounts"].append({"name": one["volumeName"], "mountPath": one["mountPath"]})


def check_jobset(manifest):
    """What the JobSet API and its webhook ask for, and what a TPU slice of several hosts needs beyond that."""
    assert manifest["apiVersion"] == "jobset.x-k8s.io/v1alpha2"
    assert manifest["kind"] == "JobSet"
    spec = manifest["spec"]
    assert set(spec) <= _JOBSET_SPEC
    assert set(spec["network"]) <= _NETWORK
    assert spec["network"]["enableDNSHostnames"] is True
    name = manifest["metadata"]["name"]
    for job in spec["replicatedJobs"]:
        assert set(job) == {"name", "replicas", "template"}
        inner = job["template"]["spec"]
        strictly({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": inner})
        assert inner["completionMode"] == "Indexed"
        assert inner["completions"] == inner["parallelism"]
        # The name of every pod, and the suffix that Kubernetes appends.
        last = f"{name}-{job['name']}-{job['replicas'] - 1}-{inner['completions'] - 1}"
        assert _DNS_LABEL.fullmatch(f"{last}-abcde")
        pod = inner["template"]["spec"]
        strictly({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": pod})
        assert pod["restartPolicy"] == "Never"
        for container in pod["containers"]:
            resources = container["resources"]
            assert resources["requests"]["google.com/tpu"] == resources["limits"]["google.com/tpu"]
            mounted = {mount["name"] for mount in container["volumeMounts"]}
            assert mounted == {volume["name"] for volume in pod["volumes"]}
