#include "palmette/aggregate/daemon/daemon.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "palmette/base/error.hpp"

namespace palmette::aggregate {
namespace {

constexpr int most_tick_ms = 250;
constexpr int most_events = 256;

int tick_ms(const DaemonSettings& settings) {
    const int shortest = std::min({settings.timeouts.ping_ms, settings.greeting_ms, settings.closing_ms});
    return std::clamp(shortest / 4, 1, most_tick_ms);
}

}  // namespace

Daemon::Daemon(DaemonSettings settings) : settings_(std::move(settings)), ledger_(settings_.limits) {
    if (settings_.parent) settings_.parent = numeric(*settings_.parent);
    listener_ = listen_on(settings_.listen);
    port_ = port_of(listener_.get());
    if (!settings_.status_path.empty()) status_listener_ = listen_on_path(settings_.status_path);
    epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
    wake_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!epoll_ || !wake_) base::fail("the daemon can't open files: raise the limit (ulimit -n)");
    for (const Fd* fd : {&listener_, &status_listener_, &wake_}) {
        if (*fd) watch(fd->get(), EPOLLIN, EPOLL_CTL_ADD);
    }
}

Daemon::~Daemon() {
    // Groups' memory goes before the ledger that their reservations point to.
    connections_.clear();
    ups_.clear();
    groups_.clear();
    if (status_listener_) unlink(settings_.status_path.c_str());
}

void Daemon::watch(int fd, std::uint32_t events, int operation) const {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    epoll_ctl(epoll_.get(), operation, fd, &event);
}

void Daemon::stop() noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
}

void Daemon::run() {
    while (!stopped_) turn(-1);
    end_all();
}

void Daemon::end_all() {
    watch(listener_.get(), 0, EPOLL_CTL_MOD);
    while (!groups_.empty()) end(*groups_.begin()->second, Reason::shutdown, "the daemon was stopped");
    for (const auto& connection : connections_) {
        if (connection && connection->state == Connection::State::greeting)
            close_with(*connection, Reason::shutdown, "the daemon was stopped");
    }
    const auto limit = Clock::now() + std::chrono::milliseconds(settings_.closing_ms);
    bury();
    while (open_ > 0 && Clock::now() < limit) turn(tick_ms(settings_));
}

void Daemon::turn(int most_ms) {
    std::array<epoll_event, most_events> events{};
    const int period = tick_ms(settings_);
    const int idle = open_ > 0 || !groups_.empty() || !accepting_ ? period : -1;
    const int wait = most_ms < 0 || (idle >= 0 && idle < most_ms) ? idle : most_ms;
    const int number =
        epoll_wait(epoll_.get(), events.data(), std::clamp(settings_.events_a_turn, 1, most_events), wait);
    for (int i = 0; i < number; ++i) {
        const int fd = events[static_cast<std::size_t>(i)].data.fd;
        if (fd == wake_.get()) {
            stopped_ = true;
        } else if (fd == listener_.get()) {
            accept_all();
        } else if (fd == status_listener_.get()) {
            answer_status();
        } else if (const auto up = ups_.find(fd); up != ups_.end()) {
            const std::shared_ptr<Group> group = up->second;
            serve_up(*group);
        } else if (static_cast<std::size_t>(fd) < connections_.size() && connections_[static_cast<std::size_t>(fd)]) {
            serve(*connections_[static_cast<std::size_t>(fd)]);
        }
    }
    const Clock::time_point now = Clock::now();
    if (now >= next_tick_) {
        next_tick_ = now + std::chrono::milliseconds(period);
        tick(now);
    }
    bury();
}

void Daemon::accept_all() {
    for (;;) {
        std::string host;
        int error = 0;
        Fd fd = accept_from(listener_.get(), host, error);
        if (!fd) {
            if (error != EMFILE && error != ENFILE) return;
            // It would be reported again at once: the next tick looks whether there is a free descriptor.
            ++metrics_.refused[static_cast<std::size_t>(Reason::no_resource)];
            accepting_ = false;
            return watch(listener_.get(), 0, EPOLL_CTL_MOD);
        }
        Nonce nonce{};
        const auto at_host = hosts_.find(host);
        const std::uint32_t already = at_host == hosts_.end() ? 0 : at_host->second;
        if (open_ >= settings_.limits.connections || already >= settings_.limits.connections_per_address ||
            !fill_random(nonce.data(), nonce.size())) {
            ++metrics_.refused[static_cast<std::size_t>(Reason::no_resource)];
            continue;
        }
        const int number = fd.get();
        tune_stream(number, settings_.timeouts.silent_ms);
        ++metrics_.connections;
        ++open_;
        ++hosts_[host];
        if (connections_.size() <= static_cast<std::size_t>(number))
            connections_.resize(static_cast<std::size_t>(number) + 1);
        auto& place = connections_[static_cast<std::size_t>(number)];
        place = std::make_unique<Connection>(std::move(fd), std::move(host), nonce);
        place->deadline = Clock::now() + std::chrono::milliseconds(settings_.greeting_ms);
        place->events = EPOLLIN;
        watch(number, EPOLLIN, EPOLL_CTL_ADD);
        pump(*place);
    }
}

void Daemon::answer_status() {
    std::string host;
    int error = 0;
    const Fd fd = accept_from(status_listener_.get(), host, error);
    if (!fd) return;
    const std::string text = status().dump() + "\n";
    const int room = static_cast<int>(text.size()) + 65536;
    setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    send_some(fd.get(), text, {});
}

void Daemon::tick(Clock::time_point now) {
    if (!accepting_) {
        accepting_ = true;
        watch(listener_.get(), EPOLLIN, EPOLL_CTL_MOD);
    }
    for (const auto& connection : connections_) {
        if (!connection) continue;
        if (connection->state == Connection::State::member &&
            is_cut_off(connection->fd.get(), settings_.timeouts.silent_ms))
            lost(*connection);
        if (now < connection->deadline) continue;
        if (connection->state == Connection::State::greeting)
            refuse(*connection, Reason::authentication, "the connection didn't join a group in time");
        else if (connection->state == Connection::State::closing)
            lost(*connection);
    }
    std::vector<std::shared_ptr<Group>> all;
    for (const auto& [number, group] : groups_) all.push_back(group);
    for (const auto& group : all) {
        if (!group->ready && now - group->made > std::chrono::milliseconds(settings_.timeouts.join_ms))
            end(*group, Reason::late_join, "not all members have come");
        else if (group->up)
            serve_up(*group);
    }
}

void Daemon::bury() {
    for (const int fd : dead_) {
        auto& place = connections_[static_cast<std::size_t>(fd)];
        const auto host = hosts_.find(place->host);
        if (--host->second == 0) hosts_.erase(host);
        --open_;
        place.reset();
    }
    dead_.clear();
}

}  // namespace palmette::aggregate
