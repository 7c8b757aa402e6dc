locals {
  orders_table = coalesce(var.orders_table_name, "${local.prefix}-orders")
}

# docs/reference/row.md lists the attributes. scripts/infra/drift_test.go compares this table
# with the one that the tests use.
resource "aws_dynamodb_table" "orders" {
  name                        = local.orders_table
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "orderId"
  range_key                   = "sk"
  deletion_protection_enabled = var.deletion_protection

  # The outbox: publish.tf publishes the event rows that are inserted.
  stream_enabled   = true
  stream_view_type = "NEW_IMAGE"

  attribute {
    name = "orderId"
    type = "S"
  }

  attribute {
    name = "sk"
    type = "S"
  }

  attribute {
    name = "openShard"
    type = "N"
  }

  attribute {
    name = "dueAt"
    type = "N"
  }

  # Orders that are not settled. Sparse: a settled order has neither attribute.
  global_secondary_index {
    name            = "open"
    projection_type = "KEYS_ONLY"

    key_schema {
      attribute_name = "openShard"
      key_type       = "HASH"
    }

    key_schema {
      attribute_name = "dueAt"
      key_type       = "RANGE"
    }
  }

  # Only event rows have it. An order whose row expired could be charged again.
  ttl {
    attribute_name = "expiresAt"
    enabled        = true
  }

  dynamic "warm_throughput" {
    for_each = var.warm_throughput == null ? [] : [var.warm_throughput]

    content {
      read_units_per_second  = warm_throughput.value.read
      write_units_per_second = warm_throughput.value.write
    }
  }

  # Before you use a restored table, follow docs/guides/operate.md, "After a restore from
  # backup": its rows may be older than the charges.
  point_in_time_recovery {
    enabled = true
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null # false: encrypted with a key that AWS owns
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    # DynamoDB raises the warm throughput of a table under load. If the configuration had
    # less, the provider would replace the table and delete its rows.
    ignore_changes = [warm_throughput]
  }

  depends_on = [aws_iam_role_policy.keys]
}
