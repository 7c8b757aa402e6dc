package order

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strings"
)

// Fingerprint identifies an order's content: a version, ':' and a hash. Of two messages
// with the same order id and different fingerprints, only the first is ever charged; the
// second is a conflict.
type Fingerprint string

// Matches reports whether f is the fingerprint of o. It compares in f's own version, so
// that a release with a newer version still recognizes the orders of the release before.
// known is false if this release cannot compute f's version.
func (f Fingerprint) Matches(o Order) (same, known bool) {
	for _, computed := range o.known {
		if computed.version() == f.version() {
			return f == computed, true
		}
	}
	return false, false
}

// Conflicts reports whether f and g are of different orders. Fingerprints of different
// versions cannot be compared and do not conflict.
func (f Fingerprint) Conflicts(g Fingerprint) bool { return f.version() == g.version() && f != g }

func (f Fingerprint) version() string {
	version, _, _ := strings.Cut(string(f), ":")
	return version
}

// fingerprints computes a draft's fingerprint in every version that a record may carry,
// the one of new records first. A new version takes two releases: the first computes it,
// the second puts it first. An old version stays as long as records carry it.
func fingerprints(d Draft) []Fingerprint {
	return []Fingerprint{fingerprintV1(d)}
}

// fingerprintV1 hashes the fields of payer, price and lines. Each part carries its
// length, so that no two drafts write the same bytes. Any change of it is a new version.
func fingerprintV1(d Draft) Fingerprint {
	h := sha256.New()
	writeStrings(h, d.ID, d.CustomerID, d.Currency, d.Payment.Customer, d.Payment.Method)
	writeInt(h, int64(len(d.Lines)))
	for _, l := range d.Lines {
		writeStrings(h, l.SKU)
		writeInt(h, l.Quantity)
		writeInt(h, l.UnitAmount)
	}
	return Fingerprint("v1:" + hex.EncodeToString(h.Sum(nil)))
}

func writeStrings(h hash.Hash, parts ...string) {
	for _, s := range parts {
		writeInt(h, int64(len(s)))
		h.Write([]byte(s))
	}
}

func writeInt(h hash.Hash, n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n)) //nolint:gosec // G115: only a bit pattern is needed
	h.Write(b[:])
}
