package config

// Version is the release of this source, which is that of the newest section of
// CHANGELOG.md. Each function logs it when it starts, and `orders --version` prints it.
const Version = "0.1.0"
