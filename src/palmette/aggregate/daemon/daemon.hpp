// The aggregation daemon: one thread, one epoll. It can run in a test's own process, turn by turn.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palmette/aggregate/daemon/group.hpp"
#include "palmette/aggregate/daemon/ledger.hpp"
#include "palmette/aggregate/daemon/metrics.hpp"

namespace palmette::aggregate {

struct DaemonSettings {
    std::string name;
    Address listen{"127.0.0.1", 0};
    std::optional<Address> parent;  ///< parent daemon in the tree; members can't name one
    std::string status_path;        ///< path of the Unix socket for status; empty: none
    std::string site_key;
    Limits limits;
    Timeouts timeouts;       ///< towards the daemon above; join_ms also for groups whose members don't come
    int greeting_ms = 5000;  ///< until a connection has proved who it is
    int closing_ms = 1000;   ///< for the reason to reach a member
    int events_a_turn = 64;
    int frames_a_turn = 16;  ///< frames read from one connection before others have their turn
};

class Daemon {
  public:
    /// Listens from now on. Throws base::Error where that can't be.
    explicit Daemon(DaemonSettings settings);
    Daemon(const Daemon&) = delete;
    Daemon& operator=(const Daemon&) = delete;
    ~Daemon();

    std::uint16_t port() const { return port_; }
    /// Waits at most that long for events (-1: until one or until a deadline) and handles them.
    void turn(int most_ms);
    /// Serves until stop(), which a signal handler or another thread may call. All groups then end with a reason.
    void run();
    void stop() noexcept;

    const Metrics& metrics() const { return metrics_; }
    std::size_t groups() const { return groups_.size(); }
    std::size_t connections() const { return open_; }
    const Usage& usage() const { return ledger_.total(); }
    /// What `palmette-aggregator status` shows.
    base::Json status() const;

  private:
    // The loop (daemon.cpp).
    void watch(int fd, std::uint32_t events, int operation) const;
    void accept_all();
    void answer_status();
    void tick(Clock::time_point now);
    void bury();
    void end_all();

    // One connection (connection.cpp).
    void serve(Connection& from);
    void on_header(Connection& from);
    void on_frame(Connection& from);
    void on_data(Connection& from);
    void on_leave(Connection& from);
    void pump(Connection& to);
    bool begin_next(Connection& to);
    void lost(Connection& from);
    void close_with(Connection& to, Reason reason, std::string_view detail);
    void refuse(Connection& to, Reason reason, const char* detail);

    // Groups (admission.cpp).
    void on_create(Connection& from);
    void on_join(Connection& from);
    void enter(Connection& member, const std::shared_ptr<Group>& group, std::uint16_t number);
    bool is_old(const Header& header) const;
    bool make_room(Connection& from, const Group::Identity& identity);
    void serve_up(Group& group);
    void pump_all(Group& group);
    void end(Group& group, Reason reason, std::string_view detail);

    DaemonSettings settings_;
    Ledger ledger_;
    Metrics metrics_;
    Fd listener_;
    Fd status_listener_;
    Fd epoll_;
    Fd wake_;
    std::uint16_t port_ = 0;
    bool stopped_ = false;
    bool accepting_ = true;
    Clock::time_point started_ = Clock::now();
    Clock::time_point next_tick_{};
    std::size_t open_ = 0;
    std::map<std::string, std::uint32_t> hosts_;
    std::vector<std::unique_ptr<Connection>> connections_;  ///< by file descriptor
    std::vector<int> dead_;
    std::map<std::uint64_t, std::shared_ptr<Group>> groups_;
    std::map<int, std::shared_ptr<Group>> ups_;                 ///< by the descriptor of their link
    std::deque<std::pair<std::uint64_t, std::uint32_t>> past_;  ///< numbers and epochs of groups that ended
};

}  // namespace palmette::aggregate
