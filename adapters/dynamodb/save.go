package dynamodb

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/domain/order"
)

// Absent is the condition of a new item.
const Absent = "attribute_not_exists(orderId)"

// Codec translates the states of one kind of item.
type Codec[T any] struct {
	Encode func(*T) Item // the attributes without the key; empty if the item is missing
	Decode func(Item) (T, error)
	Guards
}

// Guards are the attributes with a rule of their own at a write.
type Guards struct {
	// Guard are the attributes that must be as before at every write, beside those that
	// the write changes. Inner is the Guard of the maps among the attributes that change.
	Guard, Inner []string
	// Quiet are attributes that a write changes and does not compare.
	Quiet []string
	// Sparse are attributes of the Guard that an older release may not have written.
	Sparse []string
}

// Save writes the item is in place of was, if it is still as in was, with more writes,
// all or none. It is one UpdateItem, or one TransactWriteItems if there are more writes.
// Only what differs is written, so that attributes of a newer release survive.
//
// It returns nil if it wrote. If the item is not as in was, it returns the state that is
// there with order.ErrStale, or with nil if its item is that already: an earlier try of
// this write had its answer lost.
func Save[T any](
	ctx context.Context, s *Store, c Codec[T], key, was, is Item, more ...types.TransactWriteItem,
) (there *T, err error) {
	refusing, refused, err := s.write(ctx, key, difference(&c.Guards, was, is), more)
	if !refused {
		return nil, err
	}
	there = new(T)
	if len(refusing) == 0 {
		return there, order.ErrStale
	}
	if *there, err = c.Decode(refusing); err == nil && len(changed(c.Encode(there), is)) > 0 {
		err = order.ErrStale
	}
	return there, err
}

// write makes a conditional write, and returns the item that refused it.
func (s *Store) write(
	ctx context.Context, key Item, x *expressions, more []types.TransactWriteItem,
) (refusing Item, refused bool, err error) {
	condition, update := strings.Join(x.conditions, " AND "), x.update()
	refusal := types.ReturnValuesOnConditionCheckFailureAllOld
	switch {
	case len(more) > 0:
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
	case update != "":
		_, err = s.DB.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &s.TableName, Key: key, ConditionExpression: &condition, UpdateExpression: &update,
			ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
			ReturnValuesOnConditionCheckFailure: refusal,
		})
	}
	refusing, refused = Refused(err)
	return refusing, refused, err
}

// expressions are the condition and the update of a write.
type expressions struct {
	conditions, sets, removes []string
	names                     map[string]string
	values                    Item
}

// difference returns the expressions that turn the attributes was into is, on the
// condition that the item is as was where it counts. A value of was has the placeholder
// :name0, one of is :name. A missing item must be missing.
func difference(g *Guards, was, is Item) *expressions {
	x := &expressions{names: map[string]string{}, values: make(Item, len(is))}
	if len(was) == 0 {
		x.conditions = []string{Absent}
	} else {
		for _, name := range g.Guard {
			x.compare(x.name(name), name, was[name], slices.Contains(g.Sparse, name))
		}
	}
	for _, name := range changed(was, is) {
		path := x.name(name)
		if x.within(path, name, was[name], is[name], g.Inner) {
			continue
		}
		if len(was) > 0 && !slices.Contains(g.Guard, name) && !slices.Contains(g.Quiet, name) {
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

// within adds the difference of two maps, and reports whether both are maps.
func (x *expressions) within(path, prefix string, was, is types.AttributeValue, guard []string) bool {
	before, isMap := was.(*types.AttributeValueMemberM)
	after, staysMap := is.(*types.AttributeValueMemberM)
	if !isMap || !staysMap {
		return false
	}
	changes := changed(before.Value, after.Value)
	for _, name := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(guard, changes)))) {
		x.compare(path+"."+x.name(name), prefix+"_"+name, before.Value[name], false)
	}
	for _, name := range changes {
		x.put(path+"."+x.name(name), prefix+"_"+name, after.Value[name])
	}
	return true
}

// changed returns the names of the attributes that differ, in order.
func changed(was, is Item) (names []string) {
	for name, value := range is {
		if !equal(was[name], value) {
			names = append(names, name)
		}
	}
	for name := range was {
		if is[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func equal(a, b types.AttributeValue) bool {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		b, ok := b.(*types.AttributeValueMemberS)
		return ok && a.Value == b.Value
	case *types.AttributeValueMemberN:
		b, ok := b.(*types.AttributeValueMemberN)
		return ok && a.Value == b.Value
	}
	return reflect.DeepEqual(a, b)
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

func (x *expressions) value(name string, v types.AttributeValue) (placeholder string) {
	placeholder = ":" + plain(name)
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
	for i, c := range name {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return fmt.Sprintf("%s%02x%s", name[:i], c, plain(name[i+len(string(c)):]))
		}
	}
	return name
}

func (x *expressions) update() (text string) {
	if len(x.sets) > 0 {
		text = "SET " + strings.Join(x.sets, ", ")
	}
	if len(x.removes) > 0 {
		text += " REMOVE " + strings.Join(x.removes, ", ")
	}
	return strings.TrimPrefix(text, " ")
}
