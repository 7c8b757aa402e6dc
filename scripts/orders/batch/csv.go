// Package batch reads files of messages and posts them: JSON lines, CSV, and what
// `discard --save` wrote. It parses no command line.
package batch

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"orderonce/adapters/sqs/orders"
	"orderonce/domain/order"
)

// CSVColumns are the columns of a CSV file of orders. Rows with the same orderId, one
// after the other, are the lines of one order.
func CSVColumns() []string {
	return []string{
		"orderId", "customerId", "currency", "sku", "quantity", "unitAmount", "payment.customer", "payment.method",
	}
}

// csvRow is a row of a CSV file, which begins in a line. It returns the field of a
// column, "" if the file does not have that.
type csvRow struct {
	line int
	at   func(column string) string
}

// csvRows returns the rows of a file that has columns, and may have more. header maps
// columns to the file's own names. It yields nothing of an empty file.
func csvRows(
	in io.Reader, header map[string]string, columns []string, more ...string,
) iter.Seq2[csvRow, error] {
	return func(yield func(csvRow, error) bool) {
		rows := csv.NewReader(in)
		fields, err := rows.Read()
		var index map[string]int
		if err == nil {
			index, err = indexOf(fields, header, columns, more)
		}
		for err == nil {
			if fields, err = rows.Read(); err != nil {
				break
			}
			line, _ := rows.FieldPos(0)
			if !yield(csvRow{line, func(column string) string {
				if n, has := index[column]; has {
					return strings.TrimSpace(fields[n])
				}
				return ""
			}}, nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(csvRow{}, err)
		}
	}
}

// readCSV returns one message per order. An error names the line.
func readCSV(in io.Reader, header map[string]string) (all []Message, err error) {
	var open order.Draft
	line := 0 // in which open begins
	for row, err := range csvRows(in, header, CSVColumns()) {
		if err != nil {
			return nil, err
		}
		next, err := orderOf(row.at)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", row.line, err)
		}
		if line > 0 && next.ID == open.ID {
			if differs(next, open) {
				return nil, fmt.Errorf("line %d: order %q: customer, currency or payment is not that of line %d",
					row.line, open.ID, line)
			}
			open.Lines = append(open.Lines, next.Lines...)
			continue
		}
		all, open, line = flush(all, open, line), next, row.line
	}
	return flush(all, open, line), nil
}

// differs reports whether two rows of one order disagree about anything but the line.
func differs(o, other order.Draft) bool {
	return o.CustomerID != other.CustomerID || o.Currency != other.Currency || o.Payment != other.Payment
}

// flush adds the message of an order that began in a line, if there is one.
func flush(all []Message, o order.Draft, line int) []Message {
	if line == 0 {
		return all
	}
	return append(all, Message{line: line, body: orders.Encode(o)})
}

// indexOf returns the position of each column in the header. More may be missing.
func indexOf(fields []string, header map[string]string, columns, more []string) (map[string]int, error) {
	fields[0] = strings.TrimPrefix(fields[0], "\ufeff") // of a spreadsheet
	index, all := map[string]int{}, slices.Concat(columns, more)
	for column := range header {
		if !slices.Contains(all, column) {
			return nil, fmt.Errorf("--column %s: want one of %s", column, strings.Join(all, ", "))
		}
	}
	var missing, named []string
	for _, column := range all {
		name, renamed := header[column]
		if !renamed {
			name = column
		}
		if n := slices.Index(fields, name); n >= 0 {
			index[column] = n
		} else if renamed || slices.Contains(columns, column) {
			missing, named = append(missing, name), append(named, column)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("line 1: columns missing: %s: the header has %q; --column %s=NAME renames one",
			strings.Join(missing, ", "), fields, named[0])
	}
	return index, nil
}

func orderOf(at func(column string) string) (order.Draft, error) {
	quantity, err := integer("quantity", at("quantity"))
	if err != nil {
		return order.Draft{}, err
	}
	amount, err := integer("unitAmount", at("unitAmount"))
	return order.Draft{
		ID: at("orderId"), CustomerID: at("customerId"), Currency: at("currency"),
		Lines:   []order.Line{{SKU: at("sku"), Quantity: quantity, UnitAmount: amount}},
		Payment: order.Payment{Customer: at("payment.customer"), Method: at("payment.method")},
	}, err
}

func integer(column, value string) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s %q: want an integer; 1999 is an amount of 19.99 USD", column, value)
	}
	return n, nil
}
