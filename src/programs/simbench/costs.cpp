#include "costs.h"

#include <smpi/smpi.h>
#include <simgrid/s4u/Host.hpp>

#include <cstddef>
#include <cstring>

namespace {

using simgrid::s4u::Host;

/// The rate of an aggregator (python/palmette_lab/simulate/platform.py), which its link alone limits.
bool is_service(const Host* host) { return std::strncmp(host->get_cname(), "aggregator!", 11) == 0; }

double of(const end_cost& cost, std::size_t bytes, const Host* busy) {
    return is_service(busy) ? 0 : cost.message_s + cost.byte_s * static_cast<double>(bytes);
}

}  // namespace

extern "C" void charge(const costs* given) {
    // The callbacks are owned by the simulator and outlive the rank that registered them.
    const costs all = *given;
    const auto send = [all](std::size_t bytes, Host* from, Host* to) {
        return bytes >= all.eager_bytes ? 0.0 : of(from == to ? all.send_inside : all.send_between, bytes, from);
    };
    smpi_register_op_cost_callback(SmpiOperation::SEND, send);
    smpi_register_op_cost_callback(SmpiOperation::ISEND, send);
    smpi_register_op_cost_callback(SmpiOperation::RECV, [all](std::size_t bytes, Host* from, Host* to) {
        return of(from == to ? all.receive_inside : all.receive_between, bytes, to);
    });
}
