package batch

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/jobs"
)

// Amount is an amount of money as a person or a file writes it: 19.99, or 1999 in minor
// units as in messages.
type Amount string

var amountSyntax = regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,3})?$`)

// UnmarshalText parses a flag or a column.
func (a *Amount) UnmarshalText(text []byte) error {
	if !amountSyntax.Match(text) {
		return fmt.Errorf("amount %q: want 19.99, or the same in minor units: 1999", text)
	}
	*a = Amount(text)
	return nil
}

// In returns the amount in a currency.
func (a Amount) In(c order.Currency) (order.Money, error) {
	whole, fraction, pointed := strings.Cut(string(a), ".")
	missing := c.Decimals() - len(fraction)
	switch {
	case pointed && missing < 0:
		return order.Money{}, fmt.Errorf("amount %s: %s has %d decimals", a, strings.ToUpper(string(c)), c.Decimals())
	case pointed:
		whole += fraction + strings.Repeat("0", missing)
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	m := order.Money{Amount: n, Currency: c}
	if err == nil && n%c.Step() != 0 {
		err = fmt.Errorf("amount %s is %s: Stripe takes no such fraction", a, m)
	}
	return m, err
}

// Refund is a row of a file of refunds, as it was read.
type Refund struct {
	Line                                int
	OrderID, RefundID, Reason, Currency string // Currency is "" for that of the order
	Amount                              Amount
}

// Request returns the refund, of an order in a currency.
func (r Refund) Request(c order.Currency) (refund.Request, error) {
	m, err := r.Amount.In(c)
	if err != nil {
		return refund.Request{}, err
	}
	return refund.New(refund.Draft{
		OrderID: r.OrderID, RefundID: r.RefundID, Amount: m.Amount, Currency: r.Currency, Reason: r.Reason,
	})
}

// NewRefund returns the message of a refund, from a line of a file.
func NewRefund(line int, r refund.Request) Message {
	return Message{line: line, body: jobs.RefundBody(r)}
}

// ReadRefunds returns the refunds of a file: CSV with a header, or JSON lines, which
// begin with a brace. A row without a refundId or a reason has that of other. It returns
// an error if a refund has two rows, or if it is not clear what an amount means.
func (p Source) ReadRefunds(in io.Reader, other Refund) (all []Refund, err error) {
	in, done, err := p.open(in)
	if err != nil {
		return nil, err
	}
	defer done()
	text, read := bufio.NewReader(in), p.refundRows
	if first, _ := text.Peek(1); string(first) == "{" {
		read = p.refundLines
	}
	if all, err = read(text, other); err == nil {
		err = unambiguous(all)
	}
	if err != nil {
		return nil, fmt.Errorf("nothing posted: %s: %w", p.Name(), err)
	}
	return all, nil
}

func unambiguous(all []Refund) error {
	lines, pointed := map[[2]string]int{}, map[bool]int{}
	for _, r := range all {
		key, is := [2]string{r.OrderID, r.RefundID}, strings.Contains(string(r.Amount), ".")
		if before := lines[key]; before > 0 {
			return fmt.Errorf("line %d: refund %q of order %q is in line %d too: add the amounts, or give each a refundId",
				r.Line, r.RefundID, r.OrderID, before)
		}
		if before := pointed[!is]; before > 0 {
			return fmt.Errorf("line %d: amount %s: of it and that of line %d, one has a decimal point: "+
				"write 20.00 for 20, or all amounts in minor units", r.Line, r.Amount, before)
		}
		lines[key], pointed[is] = r.Line, r.Line
	}
	return nil
}

// refundRows reads CSV.
func (p Source) refundRows(in io.Reader, other Refund) (all []Refund, err error) {
	rows := csv.NewReader(in)
	first, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("read the header: %w", err)
	}
	index, err := indexOf(first, p.Column, []string{"orderId", "amount"}, "refundId", "reason", "currency")
	for err == nil {
		var row []string
		if row, err = rows.Read(); err != nil {
			break
		}
		at := func(column string) string {
			if n, has := index[column]; has {
				return strings.TrimSpace(row[n])
			}
			return ""
		}
		line, _ := rows.FieldPos(0)
		r := Refund{
			Line: line, OrderID: at("orderId"), RefundID: cmp.Or(at("refundId"), other.RefundID),
			Reason: cmp.Or(at("reason"), other.Reason), Currency: strings.ToLower(at("currency")),
		}
		if err = r.Amount.UnmarshalText([]byte(at("amount"))); err != nil {
			err = fmt.Errorf("line %d: %w", line, err)
		}
		all = append(all, r)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return all, err
}

// refundLines reads messages, without what other has.
func (p Source) refundLines(in io.Reader, other Refund) (all []Refund, err error) {
	messages, err := p.lines(in)
	decoder := jobs.NewDecoder()
	for _, m := range messages {
		fields := map[string]any{"type": "refund", "refundId": other.RefundID, "reason": other.Reason}
		if err := json.Unmarshal([]byte(m.body), &fields); err != nil {
			return nil, fmt.Errorf("line %d: %w", m.line, err)
		}
		body, _ := json.Marshal(fields) // was read as JSON
		job, err := decoder.Decode(string(body))
		if err == nil && !job.IsRefund() {
			err = errors.New("want refunds")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", m.line, err)
		}
		r := job.Refund
		all = append(all, Refund{
			m.line, string(r.OrderID()), string(r.ID()), string(r.Reason()), string(r.Currency()),
			Amount(strconv.FormatInt(r.Amount(), 10)),
		})
	}
	return all, err
}
