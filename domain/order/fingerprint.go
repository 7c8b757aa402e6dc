package order

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strings"
)

// Fingerprint identifies an order's content: a version, ':' and a hash. Two messages with one id and two fingerprints
// are two orders that claim to be one, and only the first is ever charged.
type Fingerprint string

const versionV1 = "v1"

// Matches reports whether f is the fingerprint of o. It compares in f's own version, so that a release with a newer
// one does not take yesterday's order for a stranger. known is false when this release cannot compute f's version.
func (f Fingerprint) Matches(o Order) (same, known bool) {
	version, _, _ := strings.Cut(string(f), ":")
	if version != versionV1 {
		return false, false
	}
	return f == o.fingerprint, true
}

// fingerprintV1 hashes every field that says who pays what for what. Each part carries its length, so that no two
// drafts write the same bytes. What is hashed here can never change: a new form is a new version.
func fingerprintV1(d Draft) Fingerprint {
	h := sha256.New()
	writeStrings(h, d.ID, d.CustomerID, d.Currency, d.Payment.Customer, d.Payment.Method)
	writeInt(h, int64(len(d.Lines)))
	for _, l := range d.Lines {
		writeStrings(h, l.SKU)
		writeInt(h, l.Quantity)
		writeInt(h, l.UnitAmount)
	}
	return Fingerprint(versionV1 + ":" + hex.EncodeToString(h.Sum(nil)))
}

func writeStrings(h hash.Hash, parts ...string) {
	for _, s := range parts {
		writeInt(h, int64(len(s)))
		h.Write([]byte(s))
	}
}

func writeInt(h hash.Hash, n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n)) //nolint:gosec // G115: a bit pattern, read by nobody
	h.Write(b[:])
}
