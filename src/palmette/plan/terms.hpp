// Symbolic contents under several operations: what a composed plan computes, modulo associativity and commutativity.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "palmette/plan/contributions.hpp"
#include "palmette/plan/program.hpp"

namespace palmette::plan {

/// Expressions over the initial contents of ranks' buffers. Each expression tree has a handle of its own, and a normal
/// form that expressions share if they are equal by associativity and, where the operation has it, commutativity.
class Terms {
  public:
    /// `commutes[i]`: whether operation i is commutative.
    explicit Terms(std::vector<bool> commutes) : commutes_(std::move(commutes)) {}

    /// The initial contents of a block of `rank`.
    Contents leaf(std::int32_t rank, Buffer buffer, std::int64_t block);
    /// left op right. Nothing when their blocks differ; `why` says which.
    std::optional<Contents> combine(std::uint8_t operation, Contents left, Contents right, std::string& why);
    /// The expression of `contents` under a new handle.
    Contents again(Contents contents);

    bool equal(Contents a, Contents b) const { return form(a) == form(b); }
    std::int64_t block_of(Contents contents) const { return nodes_[static_cast<std::size_t>(contents)].block; }
    /// "what rank 3 had in send block 2", "operation 0 of ...".
    std::string text(Contents contents) const;

  private:
    using Form = std::int32_t;
    /// Runs of the same operand, with their lengths (with the operand's multiplicity where the operation is
    /// commutative).
    using Operands = std::vector<std::pair<Form, std::int64_t>>;
    struct Shape {
        std::int32_t operation = -1;  ///< -1: a leaf
        std::int32_t rank = -1;
        Buffer buffer = Buffer::send;
        Operands operands;
    };
    struct Node {
        std::int64_t block;
        Form form;
    };
    Form form(Contents contents) const { return nodes_[static_cast<std::size_t>(contents)].form; }
    Operands operands_of(std::int32_t operation, Form form) const;
    Contents add(std::int64_t block, Form form);
    std::string text_of(Form form, std::int64_t block) const;

    std::vector<bool> commutes_;
    std::vector<Node> nodes_;
    std::vector<Shape> shapes_;
    std::map<std::tuple<std::int32_t, Buffer, std::int64_t>, Contents> leaves_;
    std::map<std::tuple<std::uint8_t, Contents, Contents>, Contents> combined_;
    std::map<std::tuple<std::int32_t, std::int64_t, Operands>, Form> forms_;
};

}  // namespace palmette::plan
