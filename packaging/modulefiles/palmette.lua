-- Lmod's module file of palmette: copy it to MODULEPATH as palmette/VERSION.lua. It expects `make install
-- PREFIX=<root>/VERSION`, and takes VERSION from its own name.
local root = "/opt/palmette"
-- The topology.json of the cluster, for every job (docs/guide/discover.md). Without the file nothing is set.
local topology = pathJoin(root, "topology.json")
-- Settings, topology and table of the site (docs/guide/site.md). Without the folder PREFIX/etc/palmette
-- and /etc/palmette count.
local site = pathJoin(root, "site")
-- true: after `module load` MPI programs are served without `palmette run`: the libraries are preloaded into all that
-- the shell starts. PALMETTE_ENABLE=0 switches them off.
local preload = false

local prefix = pathJoin(root, myModuleVersion())

whatis("Name: palmette")
whatis("Version: " .. myModuleVersion())
whatis("Description: topology-aware collective communication under unmodified MPI programs")
help([[palmette run mpiexec -n 64 ./app runs a program under palmette; palmette doctor shows what is there.
palmette settings shows what is set for everybody; PALMETTE_ENABLE=0 switches palmette off.]])

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
if isDir(site) then
   setenv("PALMETTE_SITE", site)
end
if preload then
   -- One for each MPI ABI: those that don't fit a program's MPI do nothing.
   for _, abi in ipairs({"mpich", "ompi", "abi"}) do
      local library = pathJoin(prefix, "lib/libpalmette_" .. abi .. ".so")
      if isFile(library) then
         append_path("LD_PRELOAD", library)
      end
   end
end
