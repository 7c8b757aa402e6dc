package order

// Currencies is the list behind ValidCurrency.
const Currencies = currencies

// NewInRelease2 is New of a later release that writes fingerprints of a second version
// and knows the first.
func NewInRelease2(d Draft) (Order, error) {
	o, err := New(d)
	if err != nil {
		return Order{}, err
	}
	v2 := "v2:" + o.fingerprint // in place of another hash of every field
	o.fingerprint, o.known = v2, append([]Fingerprint{v2}, o.known...)
	return o, nil
}

func FingerprintV1(d Draft) Fingerprint { return fingerprintV1(d) }
