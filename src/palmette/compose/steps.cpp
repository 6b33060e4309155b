#include "palmette/compose/steps.hpp"

#include <algorithm>

namespace palmette::compose {

using plan::Region;
using plan::StepKind;

void Steps::append(Regions& regions, plan::Buffer buffer, std::int64_t block) {
    if (!regions.empty() && regions.back().buffer == buffer && regions.back().blocks.end() == block)
        ++regions.back().blocks.count;
    else
        regions.push_back({buffer, {block, 1}});
}

void Steps::stage(std::int32_t stage, const std::string& name) {
    stage_ = stage;
    auto at = std::find(names_.begin(), names_.end(), name);
    // Stage indices have 8 bits: beyond 255 names steps share the last one.
    if (at == names_.end() && names_.size() < 255) at = names_.insert(at, name);
    name_ = static_cast<std::uint8_t>(at == names_.end() ? names_.size() - 1
                                                         : static_cast<std::size_t>(at - names_.begin()));
}

void Steps::begin(StepKind kind, plan::Rank peer) {
    Whole whole{{}, stage_};
    whole.step.kind = kind;
    whole.step.stage = name_;
    whole.step.peer = peer;
    whole.step.first_region = static_cast<std::uint32_t>(regions_.size());
    wholes_.push_back(whole);
    new_waits_.clear();
}

template <class Note>
void Steps::touch(const Regions& regions, Note note) {
    const auto self = static_cast<std::uint32_t>(wholes_.size() - 1);
    for (const Region& region : regions)
        for (std::int64_t b = region.blocks.first; b < region.blocks.end(); ++b) {
            Cell& touched = cell(region.buffer, b);
            if (touched.writer >= 0 && touched.writer != self)
                new_waits_.push_back(static_cast<std::uint32_t>(touched.writer));
            note(touched, self);
        }
    regions_.insert(regions_.end(), regions.begin(), regions.end());
}

void Steps::read(const Regions& regions) {
    touch(regions, [](Cell& touched, std::uint32_t self) {
        if (touched.readers.empty() || touched.readers.back() != self) touched.readers.push_back(self);
    });
}

void Steps::write(const Regions& regions) {
    touch(regions, [this](Cell& touched, std::uint32_t self) {
        for (const std::uint32_t reader : touched.readers)
            if (reader != self) new_waits_.push_back(reader);
        touched.writer = self;
        touched.readers.clear();
    });
}

void Steps::end() {
    plan::Step& step = wholes_.back().step;
    step.region_count = static_cast<std::uint32_t>(regions_.size()) - step.first_region;
    std::sort(new_waits_.begin(), new_waits_.end());
    new_waits_.erase(std::unique(new_waits_.begin(), new_waits_.end()), new_waits_.end());
    step.first_wait = static_cast<std::uint32_t>(waits_.size());
    step.wait_count = static_cast<std::uint32_t>(new_waits_.size());
    waits_.insert(waits_.end(), new_waits_.begin(), new_waits_.end());
}

void Steps::send(plan::Rank to, const Regions& regions) {
    begin(StepKind::send, to);
    read(regions);
    end();
}

void Steps::recv(plan::Rank from, const Regions& regions) {
    begin(StepKind::recv, from);
    write(regions);
    end();
}

void Steps::copy(const Regions& from, const Regions& to) {
    begin(StepKind::copy, plan::Rank{});
    read(from);
    write(to);
    wholes_.back().step.target_count = static_cast<std::uint32_t>(to.size());
    end();
}

void Steps::reduce(std::uint8_t operation, const Regions& left, const Regions& right, const Regions& target) {
    begin(StepKind::reduce, plan::Rank{});
    read(left);
    read(right);
    write(target);
    wholes_.back().step.operation = operation;
    wholes_.back().step.target_count = static_cast<std::uint32_t>(target.size());
    end();
}

std::vector<plan::Blocks> Steps::scratch_blocks() const {
    std::vector<std::vector<std::int64_t>> used;
    for (const auto& [key, cell] : cells_) {
        const auto buffer = static_cast<plan::Buffer>(key >> 48);
        if (!plan::is_scratch(buffer)) continue;
        if (used.size() <= plan::layer_of(buffer)) used.resize(plan::layer_of(buffer) + 1);
        used[plan::layer_of(buffer)].push_back(key & ((std::int64_t{1} << 48) - 1));
    }
    std::vector<plan::Blocks> out(used.size());
    for (std::size_t layer = 0; layer < used.size(); ++layer) {
        std::sort(used[layer].begin(), used[layer].end());
        for (const std::int64_t block : used[layer]) out[layer].insert({block, 1});
    }
    return out;
}

plan::Program Steps::finish(plan::Rank rank, std::int64_t blocks, std::int32_t pipeline) {
    plan::Program out;
    out.rank = rank;
    out.order = plan::BlockOrder::rank;
    out.cut = std::max<std::int64_t>(1, blocks);
    out.scratch = scratch_blocks();
    out.stages = names_;
    // Software pipelining: slice k of a step of stage t is scheduled at time t + k, so a rank works on several slices
    // at different stages.
    const auto depth = static_cast<std::size_t>(pipeline);
    std::vector<std::size_t> first;
    for (const Whole& whole : wholes_) {
        const auto until = static_cast<std::size_t>(whole.stage) + depth;
        if (first.size() <= until) first.resize(until + 1, 0);
        for (std::size_t k = 0; k < depth; ++k) ++first[static_cast<std::size_t>(whole.stage) + k + 1];
    }
    for (std::size_t t = 1; t < first.size(); ++t) first[t] += first[t - 1];
    std::vector<plan::StepId> id(wholes_.size() * depth);
    out.steps.resize(id.size());
    // Two passes, as the ids of all steps must be known before dependencies are translated.
    for (std::size_t w = 0; w < wholes_.size(); ++w)
        for (std::size_t k = 0; k < depth; ++k)
            id[w * depth + k] = static_cast<plan::StepId>(first[static_cast<std::size_t>(wholes_[w].stage) + k]++);
    out.waits.reserve(waits_.size() * depth);
    for (std::size_t w = 0; w < wholes_.size(); ++w)
        for (std::size_t k = 0; k < depth; ++k) {
            plan::Step step = wholes_[w].step;
            step.slice = {static_cast<std::uint16_t>(k), static_cast<std::uint16_t>(depth)};
            step.tag = plan::has_peer(step.kind) ? wholes_[w].stage * pipeline + static_cast<std::int32_t>(k) : 0;
            step.first_wait = static_cast<std::uint32_t>(out.waits.size());
            for (std::uint32_t i = 0; i < step.wait_count; ++i)
                out.waits.push_back(id[waits_[wholes_[w].step.first_wait + i] * depth + k]);
            out.steps[id[w * depth + k]] = step;
        }
    out.regions = std::move(regions_);
    return out;
}

}  // namespace palmette::compose
