#include "palmette/runtime/check/check_message.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace palmette::runtime {
namespace {

/// Serialises a call into one message.
class Writer {
  public:
    void number(std::int64_t value) {
        const auto* bytes = reinterpret_cast<const char*>(&value);
        data_.insert(data_.end(), bytes, bytes + sizeof value);
    }
    void text(const std::string& value) {
        number(static_cast<std::int64_t>(value.size()));
        data_.insert(data_.end(), value.begin(), value.end());
    }
    void amounts(const Amounts& value) {
        number(static_cast<std::int64_t>(value.kind));
        number(static_cast<std::int64_t>(value.bytes.size()));
        for (const std::int64_t bytes : value.bytes) number(bytes);
    }
    const std::vector<char>& data() const { return data_; }

  private:
    std::vector<char> data_;
};

class Reader {
  public:
    explicit Reader(const std::vector<char>& data) : at_(data.data()) {}
    std::int64_t number() {
        std::int64_t value = 0;
        std::memcpy(&value, at_, sizeof value);
        at_ += sizeof value;
        return value;
    }
    std::string text() {
        const auto length = static_cast<std::size_t>(number());
        std::string value(at_, length);
        at_ += length;
        return value;
    }
    Amounts amounts() {
        Amounts value;
        value.kind = static_cast<Amounts::Kind>(number());
        value.bytes.resize(static_cast<std::size_t>(number()));
        for (std::int64_t& bytes : value.bytes) bytes = number();
        return value;
    }

  private:
    const char* at_;
};

}  // namespace

std::vector<char> pack(const CheckedCall& call) {
    Writer out;
    out.text(call.function);
    out.number(call.root);
    out.number(call.bytes);
    out.number(call.type_bytes);
    out.text(call.op);
    out.text(call.elements);
    out.amounts(call.to);
    out.amounts(call.from);
    out.number(static_cast<std::int64_t>(call.fault));
    out.text(call.faulty);
    out.text(call.place);
    return out.data();
}

CheckedCall unpack(const std::vector<char>& data) {
    Reader in(data);
    CheckedCall call;
    call.function = in.text();
    call.root = in.number();
    call.bytes = in.number();
    call.type_bytes = in.number();
    call.op = in.text();
    call.elements = in.text();
    call.to = in.amounts();
    call.from = in.amounts();
    call.fault = static_cast<CheckedCall::Fault>(in.number());
    call.faulty = in.text();
    call.place = in.text();
    return call;
}

}  // namespace palmette::runtime
