mock_provider "aws" {
  source = "./tests/mocks"
}

# Distinct ARNs, so that a permission for another resource fails.
override_resource {
  target = aws_sqs_queue.orders
  values = { arn = "arn:aws:sqs:eu-west-1:123456789012:orders" }
}

override_resource {
  target = aws_sqs_queue.dead_letters
  values = { arn = "arn:aws:sqs:eu-west-1:123456789012:dead" }
}

override_resource {
  target = aws_iam_policy.operator_read
  values = { arn = "arn:aws:iam::123456789012:policy/read" }
}

override_resource {
  target = aws_iam_policy.operator_repair
  values = { arn = "arn:aws:iam::123456789012:policy/repair" }
}

variables {
  create_operator_policies = true
}

run "without_the_variable_there_are_no_policies" {
  command = plan

  variables {
    create_operator_policies = null
  }

  assert {
    condition     = length(aws_iam_policy.operator_read) == 0 && length(aws_iam_policy.operator_repair) == 0
    error_message = "create_operator_policies: must be false by default"
  }

  assert {
    condition     = output.operator_read_policy_arn == null && output.operator_repair_policy_arn == null
    error_message = "outputs: must be null without the policies"
  }
}

run "an_operator_who_reads_may_change_neither_rows_nor_queues" {
  assert {
    condition = jsonencode({ for s in jsondecode(aws_iam_policy.operator_read[0].policy).Statement :
      s.Sid => [s.Effect, sort(flatten([s.Action])), flatten([s.Resource])]
      }) == jsonencode({
      ReadOrders = [
        "Allow",
        ["dynamodb:DescribeTable", "dynamodb:GetItem", "dynamodb:Query", "dynamodb:Scan"],
        ["arn:aws:dynamodb:eu-west-1:123456789012:table/table"],
      ]
      FindWaitingOrders = [
        "Allow", ["dynamodb:Query"],
        ["arn:aws:dynamodb:eu-west-1:123456789012:table/table/index/open"],
      ]
      CountOrderMessages = [
        "Allow", ["sqs:GetQueueAttributes"], ["arn:aws:sqs:eu-west-1:123456789012:orders"],
      ]
      ReadDeadLetters = [
        "Allow", ["sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"],
        ["arn:aws:sqs:eu-west-1:123456789012:dead"],
      ]
    })
    error_message = "explain changes in docs/reference/iam.md: got ${aws_iam_policy.operator_read[0].policy}"
  }
}

run "an_operator_who_repairs_may_do_exactly_this_in_addition" {
  assert {
    condition = jsonencode({ for s in jsondecode(aws_iam_policy.operator_repair[0].policy).Statement :
      s.Sid => [s.Effect, sort(flatten([s.Action])), flatten([s.Resource])]
      if !contains(jsondecode(aws_iam_policy.operator_read[0].policy).Statement, s)
      }) == jsonencode({
      RepairOrders = [
        "Allow", ["dynamodb:PutItem", "dynamodb:UpdateItem"],
        ["arn:aws:dynamodb:eu-west-1:123456789012:table/table"],
      ]
      SendOrders = [
        "Allow", ["sqs:SendMessage"], ["arn:aws:sqs:eu-west-1:123456789012:orders"],
      ]
      DeleteDeadLetters = [
        "Allow", ["sqs:DeleteMessage"], ["arn:aws:sqs:eu-west-1:123456789012:dead"],
      ]
      RepublishEvents = [
        "Allow", ["events:PutEvents"], ["arn:aws:events:eu-west-1:123456789012:event-bus/bus"],
      ]
    })
    error_message = "explain changes in docs/reference/iam.md: got ${aws_iam_policy.operator_repair[0].policy}"
  }

  assert {
    condition = alltrue([for s in jsondecode(aws_iam_policy.operator_read[0].policy).Statement :
      contains(jsondecode(aws_iam_policy.operator_repair[0].policy).Statement, s)
    ])
    error_message = "operator-repair: must include operator-read, because repairs read first"
  }
}

run "the_outputs_are_the_arns_of_the_policies" {
  assert {
    condition = (
      output.operator_read_policy_arn == "arn:aws:iam::123456789012:policy/read"
      && output.operator_repair_policy_arn == "arn:aws:iam::123456789012:policy/repair"
    )
    error_message = "outputs: must be the ARNs of the two policies"
  }

  assert {
    condition = (
      aws_iam_policy.operator_read[0].name == "orderonce-dev-operator-read"
      && aws_iam_policy.operator_repair[0].name == "orderonce-dev-operator-repair"
    )
    error_message = "names: a permission set names a policy, so they must not change"
  }
}

# From here on the state has keys, which pins.tf keeps.
run "operators_may_use_the_keys_only_through_the_services" {
  plan_options {
    replace = [terraform_data.kms_keys]
  }

  variables {
    kms_key_arn           = "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000001"
    previous_kms_key_arns = ["arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000"]
  }

  assert {
    condition = jsonencode([for s in jsondecode(aws_iam_policy.operator_read[0].policy).Statement :
      [s.Sid, s.Effect, s.Action, s.Resource, s.Condition] if can(s.Condition)
      ]) == jsonencode([[
        "DecryptOrders", "Allow", "kms:Decrypt",
        [
          "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000",
          "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000001",
        ],
        { StringEquals = {
          "kms:ViaService" = ["dynamodb.eu-west-1.amazonaws.com", "sqs.eu-west-1.amazonaws.com"]
        } },
    ]])
    error_message = "must be every key, through DynamoDB and SQS: got ${aws_iam_policy.operator_read[0].policy}"
  }

  assert {
    condition = jsonencode([for s in jsondecode(aws_iam_policy.operator_repair[0].policy).Statement :
      [s.Effect, s.Action, s.Resource, s.Condition] if s.Sid == "EncryptOrders"
      ]) == jsonencode([[
        "Allow", "kms:GenerateDataKey",
        "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000001",
        { StringEquals = { "kms:ViaService" = "sqs.eu-west-1.amazonaws.com" } },
    ]])
    error_message = "must be the current key, through SQS: got ${aws_iam_policy.operator_repair[0].policy}"
  }

  assert {
    condition = contains(
      [for s in jsondecode(aws_iam_policy.operator_repair[0].policy).Statement : s.Sid], "DecryptOrders"
    )
    error_message = "operator-repair: must include operator-read with a key as well"
  }

  assert {
    condition = !can(regex("[*?]|secretsmanager", join("", [
      aws_iam_policy.operator_read[0].policy, aws_iam_policy.operator_repair[0].policy,
    ])))
    error_message = "a policy has a wildcard or reads a secret"
  }
}

run "without_a_current_key_operators_only_decrypt" {
  plan_options {
    replace = [terraform_data.kms_keys]
  }

  variables {
    previous_kms_key_arns = [
      "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000",
      "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000001",
    ]
  }

  assert {
    condition = [for s in jsondecode(aws_iam_policy.operator_repair[0].policy).Statement :
      s.Action if can(s.Condition)
    ] == ["kms:Decrypt"]
    error_message = "operator-repair: must still decrypt older messages, and encrypts with no key"
  }
}
