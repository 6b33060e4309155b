// Options of palmette-aggregator, from the command line and from a file of the same names.
#pragma once

#include <string>
#include <vector>

#include "aggregator/trial.hpp"
#include "palmette/aggregate/daemon/daemon.hpp"

namespace palmette::aggregator {

struct Options {
    aggregate::DaemonSettings daemon;
    std::string key_path;
    std::string user;            ///< whose rights it keeps when it was started as root
    std::optional<Trial> trial;  ///< not a daemon, but a trial of one
    bool help = false;
};

inline constexpr const char* usage = R"(Usage: palmette-aggregator --key FILE [OPTION]...

Combines what the ranks of MPI jobs send, on the way.

  --config FILE       JSON object of these options by name, and of "limits"
  --listen HOST:PORT  where members connect (127.0.0.1:7117); port 0: any free one
  --key FILE          the site's key, with mode 0600
  --parent HOST:PORT  the daemon above, with the same key
  --profile NAME      limits: open, quantum, switch-ib2, slingshot
  --name NAME         in the status
  --status PATH       Unix socket for palmette-aggregator status
  --user NAME         keep only this user's rights when started as root

A trial of a daemon that runs (palmette-aggregator try):
  --try HOST:PORT --token FILE [--members N] [--bytes N] [--chunk N]
)";

/// Throws base::Error that names the option. Of an option given twice the last one counts; the command line's count
/// more than the file's.
Options read_options(const std::vector<std::string>& words);

}  // namespace palmette::aggregator
