"""Spack's recipe of palmette, for a repository's packages/palmette/package.py (Spack 1.0 or later)."""

from spack.package import *
from spack_repo.builtin.build_systems.python import PythonPackage


class Palmette(PythonPackage):
    """Topology-aware collective communication under unmodified MPI programs, by preloading; records every MPI call of
    a program and shows what costs most."""

    pypi = "palmette/palmette-0.1.0.tar.gz"

    license("Apache-2.0", checked_by="palmette")

    # `spack checksum palmette` adds sha256 once the version is on PyPI.
    version("0.1.0")

    variant("mpich", default=True, description="Preload libraries for MPICH, Intel MPI and Cray MPICH")
    variant("openmpi", default=True, description="Preload libraries for Open MPI")
    conflicts("~mpich~openmpi", msg="palmette serves no MPI without +mpich or +openmpi")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.26:", type="build")
    depends_on("ninja", type="build")
    depends_on("py-scikit-build-core@0.11:", type="build")
    depends_on("py-nanobind@2.4:", type="build")
    # Only mpi.h is read: a program's own MPI is what palmette runs on, of any version with the same ABI.
    depends_on("mpich@4:", type="build", when="+mpich")
    depends_on("openmpi@4:", type="build", when="+openmpi")

    depends_on("python@3.10:", type=("build", "run"))
    depends_on("py-click@8.1:", type=("build", "run"))
    depends_on("py-rich@13:", type=("build", "run"))
    depends_on("py-numpy@1.24:", type=("build", "run"))
    depends_on("py-jinja2@3.1:", type=("build", "run"))
    depends_on("py-clustershell@1.9:", type=("build", "run"))
    depends_on("py-pyyaml@6:", type=("build", "run"))
    depends_on("py-pyelftools@0.31:", type=("build", "run"))

    # C++20.
    conflicts("%gcc@:11")

    def mpi_options(self, spec):
        """Return CMake's variables about MPIs, by name."""
        prefixes = {}
        if spec.satisfies("+mpich"):
            prefixes["mpich"] = spec["mpich"].prefix
            if spec.satisfies("^mpich@5:"):
                prefixes["abi"] = spec["mpich"].prefix
        if spec.satisfies("+openmpi"):
            prefixes["ompi"] = spec["openmpi"].prefix
        options = {f"PALMETTE_MPI_{abi.upper()}": str(prefix) for abi, prefix in prefixes.items()}
        return {"PALMETTE_ABIS": ";".join(prefixes), **options}

    def config_settings(self, spec, prefix):
        return {f"cmake.define.{name}": value for name, value in self.mpi_options(spec).items()}

    @run_after("install")
    def install_libraries(self):
        """Install headers, libraries, pages and completions at the prefix; the Python package has its own copies."""
        cmake = which("cmake")
        options = [f"-D{name}={value}" for name, value in self.mpi_options(self.spec).items()]
        folder = join_path(self.stage.path, "build-libraries")
        cmake("-S", self.stage.source_path, "-B", folder, "-G", "Ninja", "-DPALMETTE_BUILD_PYTHON=OFF", *options)
        cmake("--build", folder, "--parallel", str(make_jobs))
        cmake("--install", folder, "--prefix", self.prefix)
