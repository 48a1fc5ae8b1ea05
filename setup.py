"""Makes Shardwright installable: `pip install .`.

The only import root is `shardwright`: `components`, `pipelines` and `schemas` are linked into that folder. Packages of
their own with these names would collide with those of TFX projects, in site-packages and in the working directory
(`python -m` puts it first). `docs` is linked, too, so that `shardwright docs` has the pages. The sdist and the wheel
contain plain files.
"""

from pathlib import Path

from setuptools import find_namespace_packages, setup

HERE = Path(__file__).parent
VERSION = next(
    line.split('"')[1]
    for line in (HERE / "shardwright/version.py").read_text(encoding="utf-8").splitlines()
    if line.startswith("__version__")
)

# The ranges cover both stacks (requirements/*.lock hold the exact versions). The base reads and writes datasets; what
# needs more names the extra (shardwright/running/extras.py).
BASE = [
    "blake3>=1",
    "google-crc32c>=1.6",  # On Python 3.10, 1.5 runs without its compiled part, hundreds of times slower.
    "jinja2>=3",
    "markupsafe>=2",
    "numpy>=1.26",
    "pillow>=11.3,<13",  # AvifImagePlugin came with 11.3; the arguments of decoders are not a public interface.
    "pyyaml>=6",
    "rich>=13.4",  # Earlier ones do not draw the tables of Markdown.
]
TENSORFLOW = [
    "absl-py>=1.4",
    "h5py>=3.10",
    "keras>=3.10,<4",
    "protobuf>=3.20",
    "tensorboard>=2.16",
    "tensorflow>=2.16,<2.17; python_version < '3.11'",
    "tensorflow>=2.20,<2.22; python_version >= '3.11'",  # 2.20: Colab and Kaggle; TFX asks for 2.21.
]
GCS = [
    "google-api-core>=2.15",
    "google-auth>=2.26.1",
    "google-cloud-storage>=2.19,<4",
    "google-resumable-media>=2.7.2",
    "requests>=2.28",
    "urllib3>=1.26.17",  # Older ones cannot be imported on Python 3.12 and later.
]
PARQUET = ["pyarrow>=10"]
TFX = [
    *TENSORFLOW,
    *PARQUET,
    "apache-beam>=2.59,<2.60; python_version < '3.11'",  # Beam 2.60 to 2.76 is in neither stack.
    "apache-beam>=2.77,<2.78; python_version >= '3.11'",
    "jax<=0.4.34; python_version < '3.11'",
    "jax>=0.8; python_version >= '3.11'",
    "ml-metadata>=1.16,<2",
    "tensorflow-data-validation>=1.16,<2",
    "tensorflow-metadata>=1.16,<2",
    "tensorflow-model-analysis>=0.47,<1",
    "tfx>=1.16,<1.17; python_version < '3.11'",
    "tfx>=1.21,<1.22; python_version >= '3.11'",
    "tfx-bsl>=1.16,<2",
]
KUBEFLOW = [*TFX, *GCS, "kfp>=2.5,<2.17", "kubernetes>=26,<27"]
EXTRAS = {
    "gcs": GCS,
    "s3": ["boto3>=1.36", "botocore>=1.36"],  # PutObject with IfNoneMatch, which commits a manifest, came within 1.35.
    "parquet": PARQUET,
    # create_commit with parent_commit and create_tag with exist_ok; 1.0 changed the HTTP client, not these.
    "hub": ["huggingface-hub>=0.25,<3"],
    "tf": TENSORFLOW,
    "tfx": TFX,
    "kubeflow": KUBEFLOW,
    "vertex": [*KUBEFLOW, "google-cloud-aiplatform<2"],
}
# Packages for one kind of machine, which `all` leaves out. JAX of the fallback stack has none on the package index.
DEVICES = {
    "gpu": [
        "tensorflow[and-cuda]>=2.21,<2.22; python_version >= '3.11'",
        "jax[cuda12]>=0.8; python_version >= '3.11'",
    ],
    "tpu": ["jax[tpu]>=0.8; python_version >= '3.11'"],
}

setup(
    name="shardwright",
    version=VERSION,
    description="Image folders and segmentation CSVs into sharded, checked, reproducible TFRecord datasets, and models",
    long_description=(HERE / "README.md").read_text(encoding="utf-8") if (HERE / "README.md").exists() else "",
    long_description_content_type="text/markdown",
    author="The Shardwright authors",
    license_expression="Apache-2.0",
    license_files=["LICENSE"],
    keywords=[
        "computer vision",
        "dataset",
        "image segmentation",
        "keras",
        "kubeflow",
        "tensorflow",
        "tfrecord",
        "tfx",
        "tpu",
    ],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: Console",
        "Framework :: Jupyter",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: MacOS",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Scientific/Engineering :: Image Processing",
        "Typing :: Typed",
    ],
    python_requires=">=3.10,<3.14",
    packages=[
        package
        for package in find_namespace_packages(include=["shardwright", "shardwright.*"])
        if "__pycache__" not in package and not package.startswith("shardwright.docs")
    ],
    package_data={
        "": ["*.pbtxt", "*.yaml", "*.schema.json", "*.html", "*.css", "*.js", "*.txt", "*.pyi", "py.typed"],
        "shardwright": ["docs/*.md", "docs/*/*.md"],  # for `shardwright docs`
    },
    install_requires=BASE,
    extras_require={**EXTRAS, **DEVICES, "all": sorted({line for lines in EXTRAS.values() for line in lines})},
    entry_points={"console_scripts": ["shardwright=shardwright.pipelines.cli:main"]},
)
