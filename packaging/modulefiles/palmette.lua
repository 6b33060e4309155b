-- Lmod's module file of palmette: copy it to MODULEPATH as palmette/VERSION.lua. It expects `make install
-- PREFIX=<root>/VERSION`, and takes VERSION from its own name.
local root = "/opt/palmette"
-- The topology.json of the cluster, for every job (docs/guide/discover.md). Without the file nothing is set.
local topology = pathJoin(root, "topology.json")

local prefix = pathJoin(root, myModuleVersion())

whatis("Name: palmette")
whatis("Version: " .. myModuleVersion())
whatis("Description: topology-aware collective communication under unmodified MPI programs")
help([[palmette run mpiexec -n 64 ./app runs a program under palmette; palmette doctor shows what is there.]])

conflict("palmette")
prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("CMAKE_PREFIX_PATH", prefix)
prepend_path("PKG_CONFIG_PATH", pathJoin(prefix, "lib/pkgconfig"))
-- The empty entry at the end stands for the system's pages.
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
append_path("MANPATH", "")
if isFile(topology) then
   setenv("PALMETTE_TOPOLOGY", topology)
end
