package order

import "strings"

// Trace is a W3C traceparent of version 00, or "" for none: it connects log lines, rows
// and events of one order with its producer's. It is in a Lease and not in an Order,
// because a duplicate message has another trace, and the provider must get the same
// parameters under the same idempotency key.
//
// Source: https://www.w3.org/TR/trace-context/#traceparent-header.
type Trace string

// ParseTrace returns the traceparent in s, or "" if s is not a valid one.
func ParseTrace(s string) Trace {
	parts := strings.Split(s, "-")
	if len(parts) != 4 || parts[0] != "00" || len(parts[3]) != 2 || !every(parts[3], isLowerHex) ||
		!isTraceField(parts[1], 32) || !isTraceField(parts[2], 16) {
		return ""
	}
	return Trace(s)
}

// TraceFrom returns the trace with the given ids, or "" if one of them is invalid. The
// ids have 32 and 16 lower-case hexadecimal digits.
func TraceFrom(traceID, parentID string, sampled bool) Trace {
	flags := "-00"
	if sampled {
		flags = "-01"
	}
	return ParseTrace("00-" + traceID + "-" + parentID + flags)
}

// ID returns the trace id, 32 hexadecimal digits, or "" without a valid trace.
func (t Trace) ID() string {
	if ParseTrace(string(t)) == "" {
		return ""
	}
	return strings.Split(string(t), "-")[1]
}

// isTraceField reports whether s has n hexadecimal digits that are not all zero.
func isTraceField(s string, n int) bool {
	return len(s) == n && every(s, isLowerHex) && strings.Trim(s, "0") != ""
}

func isLowerHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }
