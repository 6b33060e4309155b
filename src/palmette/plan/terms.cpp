#include "palmette/plan/terms.hpp"

#include <algorithm>

#include "palmette/base/text.hpp"

namespace palmette::plan {

Contents Terms::add(std::int64_t block, Form form) {
    nodes_.push_back({block, form});
    return static_cast<Contents>(nodes_.size() - 1);
}

Contents Terms::leaf(std::int32_t rank, Buffer buffer, std::int64_t block) {
    const auto [at, fresh] = leaves_.try_emplace({rank, buffer, block}, static_cast<Contents>(nodes_.size()));
    if (fresh) {
        shapes_.push_back({-1, rank, buffer, {}});
        add(block, static_cast<Form>(shapes_.size() - 1));
    }
    return at->second;
}

Terms::Operands Terms::operands_of(std::int32_t operation, Form form) const {
    const Shape& shape = shapes_[static_cast<std::size_t>(form)];
    return shape.operation == operation ? shape.operands : Operands{{form, 1}};
}

std::optional<Contents> Terms::combine(std::uint8_t operation, Contents left, Contents right, std::string& why) {
    if (block_of(left) != block_of(right)) {
        why = base::cat("combines block ", block_of(left), " with block ", block_of(right));
        return std::nullopt;
    }
    const auto [at, fresh] = combined_.try_emplace({operation, left, right}, static_cast<Contents>(nodes_.size()));
    if (!fresh) return at->second;
    Operands operands = operands_of(operation, form(left));
    const Operands more = operands_of(operation, form(right));
    operands.insert(operands.end(), more.begin(), more.end());
    if (commutes_.at(operation)) std::sort(operands.begin(), operands.end());
    Operands joined;
    for (const auto& [operand, times] : operands) {
        if (!joined.empty() && joined.back().first == operand)
            joined.back().second += times;
        else
            joined.emplace_back(operand, times);
    }
    const std::int64_t block = block_of(left);
    const auto [form, first] = forms_.try_emplace({operation, block, joined}, static_cast<Form>(shapes_.size()));
    if (first) shapes_.push_back({operation, -1, Buffer::send, std::move(joined)});
    add(block, form->second);
    return at->second;
}

Contents Terms::again(Contents contents) {
    const Node node = nodes_[static_cast<std::size_t>(contents)];
    return add(node.block, node.form);
}

std::string Terms::text_of(Form form, std::int64_t block) const {
    const Shape& shape = shapes_[static_cast<std::size_t>(form)];
    if (shape.operation < 0)
        return base::cat("what rank ", shape.rank, " had in ", name_of(shape.buffer), " block ", block);
    std::string ranks;
    for (const auto& [operand, times] : shape.operands) {
        const Shape& inner = shapes_[static_cast<std::size_t>(operand)];
        const std::string one = inner.operation < 0 ? base::cat(inner.rank, " (", name_of(inner.buffer), ")")
                                                    : base::cat("(", text_of(operand, block), ")");
        ranks += base::cat(ranks.empty() ? "" : ", ", one, times > 1 ? base::cat(" ", times, " times") : "");
    }
    return base::cat("operation ", shape.operation, " over block ", block, " of ranks ", ranks);
}

std::string Terms::text(Contents contents) const { return text_of(form(contents), block_of(contents)); }

}  // namespace palmette::plan
