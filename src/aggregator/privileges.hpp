// What the daemon may do once it listens.
#pragma once

#include <string>

namespace palmette::aggregator {

/// As root: keeps only the rights of that user and of the groups it is in. Throws base::Error, also where rights could
/// be had back. Otherwise, and without a name, nothing changes.
void become(const std::string& user);

/// No new rights by exec, no core files and no tracing by other users: the process holds the site's key.
void harden();

}  // namespace palmette::aggregator
