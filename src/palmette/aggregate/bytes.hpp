// Fields of frames in bounded memory, little-endian. Neither class goes beyond its end: it stops and says so.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace palmette::aggregate {

class Writer {
  public:
    Writer(char* to, std::size_t size) : begin_(to), left_(size), at_(to) {}

    template <std::unsigned_integral T>
    void put(T value) noexcept {
        char bytes[sizeof(T)];
        for (std::size_t i = 0; i < sizeof(T); ++i) bytes[i] = static_cast<char>(value >> (8 * i));
        put_bytes({bytes, sizeof(T)});
    }
    void put_bytes(std::string_view bytes) noexcept {
        if (bytes.size() > left_) {
            good_ = false;
            left_ = 0;
            return;
        }
        if (!bytes.empty()) std::memcpy(at_, bytes.data(), bytes.size());
        at_ += bytes.size();
        left_ -= bytes.size();
    }
    /// Appends a text with its length in front, cut at 64 KiB.
    void put_text(std::string_view text) noexcept {
        text = text.substr(0, 0xffff);
        put(static_cast<std::uint16_t>(text.size()));
        put_bytes(text);
    }

    std::size_t size() const { return static_cast<std::size_t>(at_ - begin_); }
    std::string_view view() const { return {begin_, size()}; }
    bool good() const { return good_; }

  private:
    char* begin_;
    std::size_t left_;
    char* at_;
    bool good_ = true;
};

class Reader {
  public:
    Reader(const char* from, std::size_t size) : begin_(from), at_(from), left_(size) {}

    template <std::unsigned_integral T>
    T get() noexcept {
        const std::string_view bytes = get_bytes(sizeof(T));
        T value = 0;
        for (std::size_t i = 0; i < bytes.size(); ++i)
            value =
                static_cast<T>(value | static_cast<T>(static_cast<T>(static_cast<unsigned char>(bytes[i])) << (8 * i)));
        return value;
    }
    /// Empty once there is less left.
    std::string_view get_bytes(std::size_t size) noexcept {
        if (size > left_) {
            good_ = false;
            left_ = 0;
            return {};
        }
        const std::string_view bytes(at_, size);
        at_ += size;
        left_ -= size;
        return bytes;
    }
    template <std::size_t Size, class Array>
    void get_into(Array& array) noexcept {
        const std::string_view bytes = get_bytes(Size);
        if (!bytes.empty()) std::memcpy(array.data(), bytes.data(), Size);
    }
    std::string_view get_text() noexcept { return get_bytes(get<std::uint16_t>()); }

    std::string_view before() const { return {begin_, static_cast<std::size_t>(at_ - begin_)}; }
    /// Whether nothing was missing, and nothing is left over.
    bool complete() const { return good_ && left_ == 0; }

  private:
    const char* begin_;
    const char* at_;
    std::size_t left_;
    bool good_ = true;
};

}  // namespace palmette::aggregate
