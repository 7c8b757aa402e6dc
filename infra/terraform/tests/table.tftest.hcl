mock_provider "aws" {
  source = "./tests/mocks"
}

run "the_table_is_protected_against_deletion" {
  command = plan

  assert {
    condition     = aws_dynamodb_table.orders.deletion_protection_enabled
    error_message = "deletion_protection_enabled: must be on, the rows prevent duplicate charges"
  }
}

run "point_in_time_recovery_is_on" {
  command = plan

  assert {
    condition     = aws_dynamodb_table.orders.point_in_time_recovery[0].enabled
    error_message = "point_in_time_recovery: must be on"
  }
}

run "only_event_rows_expire" {
  command = plan

  assert {
    condition = (
      aws_dynamodb_table.orders.ttl[0].enabled
      && aws_dynamodb_table.orders.ttl[0].attribute_name == "expiresAt"
    )
    error_message = "ttl: must be expiresAt, which only event rows have"
  }
}

run "the_stream_has_new_images" {
  command = plan

  assert {
    condition = (
      aws_dynamodb_table.orders.stream_enabled && aws_dynamodb_table.orders.stream_view_type == "NEW_IMAGE"
    )
    error_message = "stream_view_type: must be NEW_IMAGE"
  }
}

run "the_index_has_orders_that_are_not_settled" {
  command = plan

  assert {
    condition = [for index in aws_dynamodb_table.orders.global_secondary_index : {
      name = index.name, projection = index.projection_type, keys = [for key in index.key_schema :
      "${key.attribute_name} ${key.key_type}"]
    }] == [{ name = "open", projection = "KEYS_ONLY", keys = ["openShard HASH", "dueAt RANGE"] }]
    error_message = "indexes: must be open alone, with openShard and dueAt, keys only"
  }
}

run "the_table_is_billed_on_demand" {
  command = plan

  assert {
    condition     = aws_dynamodb_table.orders.billing_mode == "PAY_PER_REQUEST"
    error_message = "billing_mode: must be PAY_PER_REQUEST"
  }
}

run "a_new_table_gets_the_warm_throughput" {
  command = plan

  variables {
    warm_throughput = { read = 12000, write = 8000 }
  }

  assert {
    condition = (
      aws_dynamodb_table.orders.warm_throughput[0].write_units_per_second == 8000
      && aws_dynamodb_table.orders.warm_throughput[0].read_units_per_second == 12000
    )
    error_message = "warm_throughput: ignored"
  }
}

run "deployed" {
  variables {
    warm_throughput = { read = 12000, write = 8000 }
  }
}

run "warm_throughput_never_replaces_a_table" {
  command = plan

  variables {
    warm_throughput = { read = 12000, write = 4000 }
  }

  assert {
    condition     = aws_dynamodb_table.orders.warm_throughput[0].write_units_per_second == 8000
    error_message = "warm_throughput: lowering it would replace the table"
  }
}
