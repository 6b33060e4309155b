// Time histogram of the bytes that each link carries; intervals double as the simulation gets longer.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/model/flow/flow_sharing.hpp"

namespace palmette::model {

class FlowBins {
  public:
    /// `shortest`: initial length of an interval, doubled whenever the bins don't cover the time.
    FlowBins(std::size_t links, std::size_t bins, double shortest);
    /// Sets the rate of a link from `now` on.
    void set(LinkId link, double now, double bytes_per_s) {
        if (bytes_per_s == rate_[link]) return;
        add(link, now);
        rate_[link] = bytes_per_s;
    }
    void add_rate(LinkId link, double now, double bytes_per_s) { set(link, now, rate_[link] + bytes_per_s); }
    void finish(double now);

    double length() const { return length_; }
    std::size_t bins() const { return bins_; }
    double of(LinkId link, std::size_t bin) const { return bytes_[link * bins_ + bin]; }
    double total(LinkId link) const { return total_[link]; }

  private:
    void add(LinkId link, double now);
    void lengthen(double until);

    std::size_t bins_;
    double length_;
    std::vector<double> since_, rate_, total_, bytes_;
};

}  // namespace palmette::model
