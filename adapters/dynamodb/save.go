package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/domain/order"
)

// Codec translates the states of one kind of item.
type Codec[T any] struct {
	Encode func(T) row // the attributes without the key; empty if the item is missing
	Decode func(row) (T, error)
	// Guard are the attributes that must be as before at every write, beside those that
	// the write changes. Inner is the Guard of the maps among the attributes that change.
	Guard, Inner []string
	// Quiet are attributes that a write changes and does not compare.
	Quiet []string
	// Sparse are attributes of the Guard that an older release may not have written.
	Sparse []string
}

// Save writes after in place of before, if the item is still as in before, with more
// writes, all or none. It is one UpdateItem, or one TransactWriteItems if there are more
// writes or the state has a companion. Only what differs is written, so that attributes
// of a newer release survive.
//
// It returns the state as it is afterwards. If the item is not as in before, it returns
// the state that is there with order.ErrStale, or with nil if that is after already: an
// earlier try of this write had its answer lost.
//
//nolint:ireturn // T is a struct at every call
func Save[T any](
	ctx context.Context, s *Store, c Codec[T], key row, before, after T, more ...types.TransactWriteItem,
) (now T, err error) {
	was, is := c.Encode(before), c.Encode(after)
	x := difference(c, was, is)
	if x.update() == "" && len(more) == 0 {
		return after, nil
	}
	condition, update := x.condition(), x.update()
	refusal := types.ReturnValuesOnConditionCheckFailureAllOld
	if len(more) == 0 {
		_, err = s.DB.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &s.TableName, Key: key, ConditionExpression: &condition, UpdateExpression: &update,
			ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
			ReturnValuesOnConditionCheckFailure: refusal,
		})
	} else {
		// The client request token is the SDK's, which its retries repeat. A token made of
		// order and seq would refuse another attempt's change for ten minutes.
		item := types.TransactWriteItem{Update: &types.Update{
			TableName: &s.TableName, Key: key, ConditionExpression: &condition, UpdateExpression: &update,
			ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
			ReturnValuesOnConditionCheckFailure: refusal,
		}}
		_, err = s.DB.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
			TransactItems: append([]types.TransactWriteItem{item}, more...),
		})
	}
	refusing, refused := Refused(err)
	if !refused {
		return after, err
	}
	if len(refusing) == 0 {
		var missing T
		return missing, order.ErrStale
	}
	if now, err = c.Decode(refusing); err == nil && !reflect.DeepEqual(c.Encode(now), is) {
		err = order.ErrStale
	}
	return now, err
}

// expressions are the condition and the update of a write.
type expressions struct {
	conditions, sets, removes []string
	names                     map[string]string
	values                    row
}

// difference returns the expressions that turn the attributes was into is, on the
// condition that the item is as was where it counts. A value of was has the placeholder
// :name0, one of is :name. A missing item must be missing.
func difference[T any](c Codec[T], was, is row) *expressions {
	x := &expressions{names: map[string]string{}, values: row{}}
	if len(was) == 0 {
		x.conditions = []string{Absent}
	} else {
		for _, name := range c.Guard {
			x.compare(x.name(name), name, was[name], slices.Contains(c.Sparse, name))
		}
	}
	for _, name := range changed(was, is) {
		path := x.name(name)
		before, isMap := was[name].(*types.AttributeValueMemberM)
		after, staysMap := is[name].(*types.AttributeValueMemberM)
		if isMap && staysMap {
			x.within(path, name, before.Value, after.Value, c.Inner)
			continue
		}
		if len(was) > 0 && !slices.Contains(c.Guard, name) && !slices.Contains(c.Quiet, name) {
			x.compare(path, name, was[name], false)
		}
		x.put(path, name, is[name])
	}
	if len(x.names) == 0 {
		x.names = nil // DynamoDB refuses an empty map
	}
	if len(x.values) == 0 {
		x.values = nil
	}
	return x
}

// within adds the difference of a map.
func (x *expressions) within(path, prefix string, was, is row, guard []string) {
	changes := changed(was, is)
	for _, name := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(guard, changes)))) {
		x.compare(path+"."+x.name(name), prefix+"_"+name, was[name], false)
	}
	for _, name := range changes {
		x.put(path+"."+x.name(name), prefix+"_"+name, is[name])
	}
}

// changed returns the names of the attributes that differ.
func changed(was, is row) (names []string) {
	all := maps.Clone(was)
	if all == nil {
		all = row{}
	}
	maps.Copy(all, is)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !reflect.DeepEqual(was[name], is[name]) {
			names = append(names, name)
		}
	}
	return names
}

// compare adds the condition that an attribute has this value, nil if it must be missing.
// A sparse one may be missing too.
func (x *expressions) compare(path, name string, value types.AttributeValue, sparse bool) {
	missing := "attribute_not_exists(" + path + ")"
	switch {
	case value == nil:
		x.conditions = append(x.conditions, missing)
	case sparse:
		x.conditions = append(x.conditions, "("+missing+" OR "+path+" = "+x.value(name+"0", value)+")")
	default:
		x.conditions = append(x.conditions, path+" = "+x.value(name+"0", value))
	}
}

// put adds the change of an attribute to this value, or its removal.
func (x *expressions) put(path, name string, value types.AttributeValue) {
	if value == nil {
		x.removes = append(x.removes, path)
		return
	}
	x.sets = append(x.sets, path+" = "+x.value(name, value))
}

func (x *expressions) value(name string, v types.AttributeValue) string {
	placeholder := ":" + plain(name)
	x.values[placeholder] = v
	return placeholder
}

// name returns the name of an attribute in an expression: a placeholder for a reserved
// word, and for a name with other characters than letters and digits.
func (x *expressions) name(name string) string {
	if name != "status" && name != "owner" && name != "reason" && plain(name) == name {
		return name
	}
	placeholder := "#" + plain(name)
	x.names[placeholder] = name
	return placeholder
}

// plain returns a name with every character that a placeholder cannot have written in
// hexadecimal.
func plain(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%02x", c)
		}
	}
	return b.String()
}

func (x *expressions) condition() string { return strings.Join(x.conditions, " AND ") }

func (x *expressions) update() string {
	var parts []string
	if len(x.sets) > 0 {
		parts = append(parts, "SET "+strings.Join(x.sets, ", "))
	}
	if len(x.removes) > 0 {
		parts = append(parts, "REMOVE "+strings.Join(x.removes, ", "))
	}
	return strings.Join(parts, " ")
}

// Absent is the condition of a new item.
const Absent = "attribute_not_exists(orderId)"

var errNoStockTable = errors.New("the order holds stock, but no stock table is configured: set STOCK_TABLE")
